// SPDX-License-Identifier: MIT

// preemption: some fibers are in endless loops. How late do the others run, which sleep for a
// millisecond each time?

#include <fmt/format.h>

#include "../compare.hpp"
#include "../detectors.hpp"

namespace tool {

namespace {

constexpr unsigned slice_us = 1000;

class preemption final : public workload {
public:
    std::string_view name() const override { return "preemption"; }
    std::string_view about() const override {
        return "fibers that sleep for 1 ms beside others in endless loops: how late they run";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "go", "ums"};
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 1 : 3;
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        const auto runtimes = chosen(options, notes);
        const auto detectors = std::vector<std::string>{"monitor"};
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, {1, 4, 16})) {
                setting group;
                for (const auto& runtime : runtimes) {
                    if (runtime != "ums") {
                        group.push_back(one_cell(runtime, p, n, "none", 0, options.quick));
                        continue;
                    }
                    for (const auto& detector : detectors)
                        group.push_back(one_cell(runtime, p, n, detector, slice_us, options.quick));
                }
                all.push_back(std::move(group));
            }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            made.tables.push_back(by_figure(
                got, fmt::format("preemption: {}", conditions(got, p)),
                {{"fibers", "loops"}, {"detector", "detector"}, {"slice_us", "slice, us"}},
                {{"lateness_p50_us", "late p50, us"},
                 {"lateness_p99_us", "p99, us"},
                 {"lateness_max_us", "max, us"},
                 {"turns_per_us", "turns of the loops/us"}},
                which));
            made.tables.back().notes.push_back(
                "Late: four that sleep for 0.5 to 1.5 ms, from the end of that until they run. "
                "Boost.Fiber does not preempt: they run when the loops have ended.");
            made.charts.push_back(bars(
                got, fmt::format("preemption, {}", count(p, "processor")), "lateness_p99_us",
                "lateness p99, us",
                [which](const cell& one) {
                    return which(one) &&
                           (one.runtime != "ums" || one.settings["detector"] == "monitor");
                },
                [](const cell& one) { return count(one.fibers(), "loop"); }));
        }
        return made;
    }

private:
    cell one_cell(const std::string& runtime, std::uint64_t processors, std::uint64_t loops,
                  const std::string& detector, unsigned slice, bool quick) const {
        auto one = make_cell(runtime, processors, loops);
        one.settings["detector"] = detector;
        one.settings["slice_us"] = slice;
        if (slice != 0) {
            one.args.push_back("detector=" + detector);
            one.args.push_back(fmt::format("slice_us={}", slice));
        }
        if (quick) one.args.push_back("ms=200");
        return one;
    }
};

}  // namespace

std::unique_ptr<workload> make_preemption() { return std::make_unique<preemption>(); }

}  // namespace tool
