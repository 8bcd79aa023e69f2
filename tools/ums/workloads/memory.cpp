// SPDX-License-Identifier: MIT

// memory: N fibers exist and are blocked: what each occupies, and what it took to create it.

#include <fmt/format.h>

#include <algorithm>

#include "../compare.hpp"

namespace tool {

namespace {

// Above this the kernel's limits on threads and mappings come near.
constexpr std::uint64_t most_threads = 10'000;

class memory final : public workload {
public:
    std::string_view name() const override { return "memory"; }
    std::string_view about() const override {
        return "what a blocked fiber occupies, and what it took to create it";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "go", "ums"};
    }
    unsigned repetitions(const bench_options&) const override { return 3; }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        const auto given = given_or(options.fibers, {0});  // 0: each runtime's own number.
        for (const auto p : options.processors)
            for (const auto n : given) {
                setting group;
                for (const auto& runtime : chosen(options, notes)) {
                    const auto fibers = how_many(runtime, n, options.quick);
                    if (n == 0 &&
                        !fits(runtime, fibers, runtime == "boost.fiber" ? 16'000 : 6000, notes))
                        continue;
                    group.push_back(make_cell(runtime, p, fibers));
                }
                all.push_back(std::move(group));
            }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            auto shown =
                by_figure(got, fmt::format("memory: blocked fibers, {}", conditions(got, p)),
                          {{"fibers", "fibers"}},
                          {{"bytes_per_fiber", "bytes each"},
                           {"pte_bytes_per_fiber", "page tables each"},
                           {"ns_per_op", "ns to create"},
                           {"maps_lines", "lines of maps"},
                           {"peak_rss_bytes", "peak memory", human_bytes}},
                          which);
            shown.notes.push_back("std::thread: without what the kernel keeps for each thread.");
            made.tables.push_back(std::move(shown));
            const auto name = [](const cell&) { return std::string{"blocked"}; };
            made.charts.push_back(bars(got, fmt::format("memory, {}", count(p, "processor")),
                                       "bytes_per_fiber", "bytes resident per fiber", which, name));
            made.charts.push_back(bars(got, fmt::format("creation, {}", count(p, "processor")),
                                       "ns_per_op", "ns to create one", which, name));
        }
        return made;
    }

private:
    static std::uint64_t how_many(const std::string& runtime, std::uint64_t given, bool quick) {
        if (runtime == "std::thread")
            return std::min(most_threads, given != 0 ? given : quick ? 1000 : most_threads);
        if (given != 0) return given;
        if (quick) return 10'000;
        return runtime == "ums" ? 1'000'000 : 100'000;
    }
};

}  // namespace

std::unique_ptr<workload> make_memory() { return std::make_unique<memory>(); }

}  // namespace tool
