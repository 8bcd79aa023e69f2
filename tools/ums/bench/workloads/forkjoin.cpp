// SPDX-License-Identifier: MIT

// forkjoin: five recursive programs, one task for each call or with a cut-off, by each way of ums
// to fork and join and beside its peers.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "../../machine.hpp"
#include "../../usage.hpp"
#include "../compare.hpp"
#include "../peer.hpp"

namespace tool {

namespace {

// The ways of ums are one program with other arguments.
struct way_of_ums {
    std::string_view runtime;
    std::vector<std::string> args;
};

const std::array ways_of_ums{
    way_of_ums{"ums", {"how=fiber"}},
    way_of_ums{"ums dispatch", {"how=fiber", "launch=dispatch"}},
    way_of_ums{"ums scope", {"how=scope"}},
    way_of_ums{"ums scope dispatch", {"how=scope", "launch=dispatch"}},
    way_of_ums{"ums spawn", {"how=spawn"}},
    way_of_ums{"ums spawn dispatch", {"how=spawn", "launch=dispatch"}},
    way_of_ums{"ums fork_join", {"how=fork_join"}},
};

struct recursion {
    std::string_view name, about;
    std::uint64_t size, cut_off, quick_size, quick_cut_off;
};

const std::array recursions{
    recursion{"fib", "calls that make two", 30, 20, 18, 10},
    recursion{"skynet", "a tree, ten children each", 1'000'000, 1000, 10'000, 100},
    recursion{"nqueens", "placing queens, row by row", 12, 8, 8, 4},
    recursion{"matmul", "matrices, in quarters down to 32", 512, 128, 128, 64},
    recursion{"uts", "an unbalanced tree", 17, 9, 11, 6},
};

// One that was asked for, as "fib" or "fib:34".
struct asked_for {
    const recursion* which;
    std::optional<std::uint64_t> size;
};

asked_for understood(std::string_view word) {
    const auto colon = word.find(':');
    const auto found = std::find_if(
        recursions.begin(), recursions.end(),
        [name = word.substr(0, colon)](const recursion& one) { return one.name == name; });
    std::uint64_t size = 0;
    if (colon != std::string_view::npos) {
        const auto* const end = word.data() + word.size();
        const auto [stop, error] = std::from_chars(word.data() + colon + 1, end, size);
        if (error != std::errc{} || stop != end || size == 0)
            throw usage_error{fmt::format("--ways: '{}': expected NAME or NAME:SIZE", word)};
    }
    if (found == recursions.end()) {
        std::vector<std::string_view> known;
        for (const auto& one : recursions) known.push_back(one.name);
        throw usage_error{fmt::format("--ways: forkjoin has no way '{}'; expected some of: {}",
                                      word, fmt::join(known, ", "))};
    }
    return {&*found, size == 0 ? std::nullopt : std::optional{size}};
}

// A fiber of Boost at rest takes so much (skynet), and it walks trees breadth first.
constexpr std::uint64_t resting_boost_bytes = 5000;
constexpr std::string_view boost_fiber = "boost.fiber static";

class forkjoin final : public workload {
public:
    std::string_view name() const override { return "forkjoin"; }
    std::string_view about() const override {
        return "fib, skynet, nqueens, matmul and unbalanced trees: time, CPU time and memory";
    }
    std::vector<std::string> runtimes() const override {
        std::vector<std::string> all{"serial", "std::async", "openmp",
                                     "tbb",    "go",         std::string{boost_fiber}};
        for (const auto& one : ways_of_ums) all.emplace_back(one.runtime);
        return all;
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 1 : 3;
    }

    void check(const bench_options& options) const override {
        auto others = options;
        others.ways.clear();
        workload::check(others);
        if (!options.fibers.empty())
            throw usage_error{"--fibers: forkjoin has no such setting; see --ways, such as fib:34"};
        for (const auto& one : options.ways) understood(one);
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : processors_of(options))
            for (const auto& [which, asked_size] : asked(options)) {
                const auto size =
                    asked_size.value_or(options.quick ? which->quick_size : which->size);
                for (const auto cut_off :
                     {std::uint64_t{0}, options.quick ? which->quick_cut_off : which->cut_off}) {
                    setting group;
                    for (const auto& runtime : chosen(options, notes))
                        if (ends(runtime, *which, size, cut_off, notes))
                            group.push_back(one_cell(options, runtime, p, *which, size, cut_off));
                    all.push_back(std::move(group));
                }
            }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : processors_of(got.options))
            for (const auto& which : recursions) {
                const filter of = [&, p](const cell& one) {
                    return one.processors == p && one.settings["way"] == which.name;
                };
                auto shown =
                    by_figure(got,
                              fmt::format("forkjoin, {}: {}, {}", which.name, which.about,
                                          conditions(got, p)),
                              {{"size", "size"}, {"cut_off", "cut-off"}},
                              {{"total_ns", "total, ms", in_ms},
                               {"cpu_ns", "CPU, ms", in_ms},
                               {"peak_above_start_bytes", "peak memory above start", human_bytes},
                               {"stacks", "stacks"}},
                              of);
                if (shown.rows.empty()) continue;
                shown.notes = ratios(got, "total_ns", "cut_off", "", [&](const cell& one) {
                    return of(one) && one.settings["cut_off"] == 0;
                });
                if (!shown.notes.empty())
                    shown.notes.insert(shown.notes.begin(), "Time without a cut-off:");
                made.tables.push_back(std::move(shown));
                for (const auto& [figure, title] :
                     {std::pair{"total_ns", "ns"}, std::pair{"peak_above_start_bytes", "bytes"}})
                    made.charts.push_back(bars(
                        got, fmt::format("forkjoin, {}, {}", which.name, count(p, "processor")),
                        figure, title, of, [](const cell& one) {
                            const auto cut_off = one.settings["cut_off"].get<std::uint64_t>();
                            return cut_off == 0 ? std::string{"a task each"}
                                                : "cut-off " + human(cut_off);
                        }));
            }
        return made;
    }

protected:
    std::string program(const std::string& runtime) const override {
        return program_of(name(), runtime.starts_with("ums") ? "ums" : runtime);
    }

private:
    static std::string in_ms(double ns) { return human(ns / 1e6); }

    // One and two. The short form: the most of them.
    static std::vector<std::uint64_t> processors_of(const bench_options& options) {
        if (options.has_processors) return options.processors;
        const std::uint64_t most = std::min<std::size_t>(available_cpus().size(), 2);
        if (most == 1 || options.quick) return {most};
        return {1, most};
    }

    static std::vector<asked_for> asked(const bench_options& options) {
        std::vector<asked_for> all;
        for (const auto& one : options.ways) all.push_back(understood(one));
        if (options.ways.empty())
            for (const auto& one : recursions) all.push_back({&one, std::nullopt});
        return all;
    }

    // About as many tasks as there are without a cut-off.
    static double tasks(const recursion& which, std::uint64_t size) {
        const auto n = static_cast<double>(size);
        if (which.name == "fib") return std::pow(1.618, n);
        if (which.name == "nqueens") return std::pow(4.1, n - 2);
        if (which.name == "uts") return 4 * std::pow(1.98, n);
        return which.name == "matmul" ? std::pow(n / 32, 2) : n;
    }

    static bool ends(const std::string& runtime, const recursion& which, std::uint64_t size,
                     std::uint64_t cut_off, std::vector<std::string>& notes) {
        if (runtime == boost_fiber && cut_off == 0)
            return fits(runtime, static_cast<std::uint64_t>(tasks(which, size)),
                        resting_boost_bytes, notes);
        if (runtime != "std::async" || cut_off != 0) return true;
        const std::string note =
            "std::async was run with a cut-off only: a kernel thread for each task cannot be had.";
        if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
        return false;
    }

    cell one_cell(const bench_options& options, const std::string& runtime,
                  std::uint64_t processors, const recursion& which, std::uint64_t size,
                  std::uint64_t cut_off) const {
        cell made;
        made.runtime = runtime;
        made.program = program(runtime);
        made.processors = processors;
        made.settings["processors"] = processors;
        made.settings["way"] = which.name;
        made.settings["size"] = size;
        made.settings["cut_off"] = cut_off;
        made.args = {fmt::format("program={}", which.name), fmt::format("size={}", size),
                     fmt::format("cut_off={}", cut_off),
                     fmt::format("min_ms={}", options.quick ? 1 : 50)};
        // The stacks are counted in the first repetition.
        made.first_args = {"count=1"};
        for (const auto& one : ways_of_ums)
            if (one.runtime == runtime)
                made.args.insert(made.args.end(), one.args.begin(), one.args.end());
        if (runtime == boost_fiber) {
            made.probe_args = {fmt::format("size={}", which.quick_size),
                               fmt::format("cut_off={}", cut_off == 0 ? 0 : which.quick_cut_off),
                               "min_ms=1"};
            for (const auto* stack : {"stack=fixed", "stack=pooled"})
                for (const auto* launch : {"launch=post", "launch=dispatch"})
                    if (processors == 1 || std::string_view{stack} == "stack=fixed")
                        made.variants.push_back({stack, launch});
        }
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_forkjoin() { return std::make_unique<forkjoin>(); }

}  // namespace tool
