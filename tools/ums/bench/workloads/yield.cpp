// SPDX-License-Identifier: MIT

// yield: the published comparison. Each of N threads or fibers gives up the processor M times.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "../../usage.hpp"
#include "../compare.hpp"
#include "../peer.hpp"
#include "../published.hpp"

namespace tool {

namespace {

// How long one cell may take in one repetition. With five repetitions the whole table then takes
// about two minutes; native threads alone would need half an hour.
constexpr double budget_s = 1.5;
constexpr double demo_budget_s = 1;
constexpr double quick_budget_s = 0.1;
constexpr double cycles_budget_s = 6;

class yield : public workload {
public:
    std::string_view name() const override { return "yield"; }
    std::string_view about() const override {
        return "N threads or fibers, each yields M times: the published comparison";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "go", "ums"};
    }

    bool has_detectors() const override { return true; }

    void check(const bench_options& options) const override {
        if (options.cycles && options.processors != std::vector<std::uint64_t>{1})
            throw usage_error{
                "--cycles: a single switch can only be timed on one processor, drop --processors"};
        // The options that only yield has are checked here; the rest is as everywhere.
        auto others = options;
        others.yields.clear();
        others.cycles = false;
        workload::check(others);
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<std::uint64_t> fibers{10, 100, 1000};
        std::vector<std::uint64_t> yields{100, 1000, 10'000, 100'000};
        if (options.quick) {
            fibers = {10, 1000};
            yields = {100, 1000};
        }
        if (options.cycles) {
            fibers = {4};
            yields = {options.quick ? 10'000U : 1'000'000U};
        }
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, fibers))
                for (const auto m : given_or(options.yields, yields)) {
                    setting group;
                    for (const auto& runtime : chosen(options, notes)) {
                        auto one = make_cell(runtime, p, n);
                        one.settings["yields"] = m;
                        one.yields = m;
                        one.budget_s = options.quick    ? quick_budget_s
                                       : options.cycles ? cycles_budget_s
                                       : options.demo   ? demo_budget_s
                                                        : budget_s;
                        one.probe_args = {fmt::format("yields={}", std::min<std::uint64_t>(m, 100)),
                                          "min_ms=10"};
                        if (options.cycles) {
                            one.settings["way"] = "cycles";
                            one.args.push_back("measure=cycles");
                            one.probe_args.push_back("measure=time");
                        }
                        group.push_back(std::move(one));
                    }
                    all.push_back(std::move(group));
                }
        return all;
    }

    view show(const result& got) const override {
        const bool cycles = got.options.cycles;
        const std::string figure = cycles ? "cycles_per_op" : "ns_per_op";
        const std::string unit = cycles ? "cycles per switch" : "ns per yield";
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            auto shown =
                by_runtime(got, fmt::format("{}: {}, {}", name(), unit, conditions(got, p)),
                           {{"fibers", "threads"}, {"yields", "yields each"}}, figure, which);
            shown.notes = ratios(got, figure, "fibers", "fiber", which);
            made.tables.push_back(std::move(shown));
            made.charts.push_back(bars(got, fmt::format("{}, {}", name(), count(p, "processor")),
                                       figure, unit, which, [](const cell& one) {
                                           return fmt::format(
                                               "{} \u00d7 {}", human(one.fibers()),
                                               human(one.settings["yields"].get<std::uint64_t>()));
                                       }));
            made.charts.back().x_title = "threads or fibers \u00d7 yields each";
            made.charts.back().about =
                "What one yield costs: the caller goes to the back of the queue, and the next in "
                "line runs. The axis is logarithmic, and lower is better.";
        }
        for (auto& note : throughput(got)) made.tables.back().notes.push_back(std::move(note));
        if (!cycles) add_claims(made, got);
        return made;
    }

private:
    static void add_claims(view& made, const result& got) {
        std::vector<std::uint64_t> fibers, yields;
        for (const auto& group : got.plan)
            if (!group.empty()) {
                fibers.push_back(group.front().fibers());
                yields.push_back(group.front().yields);
            }
        if (fibers.empty()) return;
        std::sort(fibers.begin(), fibers.end());
        const auto most = *std::max_element(yields.begin(), yields.end());
        const auto at = [&](std::uint64_t n) {
            return [n, most](const cell& one) { return one.fibers() == n && one.yields == most; };
        };
        add_claim(made, got, at(fibers[fibers.size() / 2]));
        add_comparison_with_windows(made, got, at(fibers.back()));
    }

    static void add_claim(view& made, const result& got, const filter& which) {
        const auto* const group = setting_of(got, which);
        if (group == nullptr) return;
        const auto ours = median_of(*group, "ums", "ns_per_op", which);
        if (!ours) return;
        std::vector<std::string> parts;
        for (const auto& [runtime, name] :
             {std::pair{"std::thread", "a thread's"},
              std::pair{"boost.fiber static", "Boost.Fiber's"}, std::pair{"go", "Go's"}})
            if (const auto theirs = median_of(*group, runtime, "ns_per_op", which))
                parts.push_back(compared_with(*ours, *theirs, name));
        if (parts.empty()) return;
        const auto last = parts.back();
        parts.pop_back();
        made.claims.push_back(
            {fmt::format("A yield is {}{}{}.", fmt::join(parts, ", "), parts.empty() ? "" : " and ",
                         last),
             fmt::format("{} fibers or threads on {} give it up by turns, {} times each: the time "
                         "of one yield. Shorter is better.",
                         human(group->front().fibers()),
                         count(group->front().processors, "processor"),
                         human(group->front().yields)),
             bars_of(*group, "ns_per_op", which, [](double ns) { return human(ns) + " ns"; })});
    }

    // Each beside the native threads of its own machine: the ratios can be compared.
    static void add_comparison_with_windows(view& made, const result& got, const filter& which) {
        const auto* const group = setting_of(got, which);
        if (group == nullptr) return;
        const auto worker = median_of(*group, "ums-worker", "ns_per_op", which);
        const auto native = median_of(*group, "std::thread", "ns_per_op", which);
        if (!worker || !native) return;
        const auto theirs = std::find_if(std::begin(published::windows_yields),
                                         std::end(published::windows_yields), [&](const auto& one) {
                                             return one.threads == group->front().fibers() &&
                                                    one.yields == group->front().yields;
                                         });
        if (theirs == std::end(published::windows_yields)) return;
        claim shown;
        shown.says =
            fmt::format("Threads of the Windows UMS API yield {} here; on Windows they were {}.",
                        compared_with(*worker, *native, "native ones"),
                        compared(theirs->worker, theirs->native, of_times));
        shown.about = fmt::format(
            "How many times faster than the native threads of the same machine, with {} threads "
            "that yield {} times each. Windows: as published for an Intel i5-6200U. Longer is "
            "better.",
            human(theirs->threads), human(theirs->yields));
        const auto add = [&](const char* name, double factor) {
            shown.bars.push_back({name, factor, human(factor) + " times"});
        };
        if (const auto fiber = median_of(*group, "ums", "ns_per_op", which))
            add("ums", *native / *fiber);
        add("ums-worker", *native / *worker);
        add("Windows fiber", theirs->native / theirs->fiber);
        add("Windows UMS", theirs->native / theirs->worker);
        made.claims.push_back(std::move(shown));
    }

    // What more processors bring: each runtime's throughput beside its own with the fewest
    // processors, for each number of fibers, from the fewest yields to the most. (A run of 100
    // yields each is over before the other processors have their share of the fibers.)
    static std::vector<std::string> throughput(const result& got) {
        std::vector<std::string> lines;
        const auto fewest = got.options.processors.front();
        for (const auto processors : got.options.processors) {
            if (processors == fewest) continue;
            std::map<std::string, std::map<std::uint64_t, std::vector<double>>> gains;
            each_pair(got, fewest, processors, [&](const cell& few, const cell& many) {
                const auto before = few.figure("ops_per_s");
                const auto after = many.figure("ops_per_s");
                if (before && after)
                    gains[few.runtime][few.fibers()].push_back(after->median / before->median);
            });
            for (const auto& [runtime, by_fibers] : gains) {
                auto line = fmt::format("throughput with {} / with {}, by yields each, {:<18}",
                                        count(processors, "processor"), fewest, runtime);
                for (const auto& [fibers, found] : by_fibers)
                    line += fmt::format("   {:.2f} ({})", fmt::join(found, ", "),
                                        count(fibers, "fiber"));
                lines.push_back(std::move(line));
            }
        }
        return lines;
    }

    // The cells that differ only in the number of processors.
    template <class Use>
    static void each_pair(const result& got, std::uint64_t fewest, std::uint64_t processors,
                          Use use) {
        const auto is_same = [](const cell& a, const cell& b) {
            return a.runtime == b.runtime && a.fibers() == b.fibers() && a.yields == b.yields &&
                   a.settings.value("detector", "") == b.settings.value("detector", "");
        };
        for (const auto& few : got.plan)
            for (const auto& many : got.plan)
                for (const auto& a : few)
                    for (const auto& b : many)
                        if (a.processors == fewest && b.processors == processors && is_same(a, b))
                            use(a, b);
    }
};

// The same with workers of the UMS API. The other runtimes' peers are those of yield.
class workers final : public yield {
public:
    std::string_view name() const override { return "workers"; }
    std::string_view about() const override {
        return "N threads, fibers or workers of the UMS API, each yields M times";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "go", "ums", worker};
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.demo ? 3 : yield::repetitions(options);
    }
    double limit_s(const bench_options& options) const override { return options.demo ? 80 : 0; }

    bool has_detectors() const override { return false; }

    void check(const bench_options& options) const override {
        auto others = options;  // It has yields, as yield has; the rest is as everywhere.
        others.yields.clear();
        workload::check(others);
    }

protected:
    std::string program(const std::string& runtime) const override {
        return program_of(runtime == worker ? "workers" : "yield", runtime);
    }

private:
    static constexpr const char* worker = "ums-worker";
};

}  // namespace

std::unique_ptr<workload> make_yield() { return std::make_unique<yield>(); }
std::unique_ptr<workload> make_workers() { return std::make_unique<workers>(); }

}  // namespace tool
