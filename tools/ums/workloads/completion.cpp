// SPDX-License-Identifier: MIT

// completion: the table of the Linux module's report: N workers that count, on some scheduler threads that share one
// completion list.

#include <fmt/format.h>

#include "../compare.hpp"

namespace tool {

namespace {

class completion final : public workload {
public:
    std::string_view name() const override { return "completion"; }
    std::string_view about() const override {
        return "N workers that count, on scheduler threads that share one completion list";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "thread pool", "ums-worker"};
    }
    // The longest cells take half a minute; all 132 once take ten minutes.
    unsigned repetitions(const bench_options&) const override { return 1; }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<std::uint64_t> workers{1000, 5000, 10'000}, schedulers{1, 2, 4, 8, 16};
        std::vector<std::uint64_t> steps{5000, 5'000'000};
        if (options.quick) workers = {200}, schedulers = {1, 4}, steps = {5000};
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, workers))
                for (const auto m : steps)
                    for (const auto* way : {"run", "yield"})
                        for (const auto s : schedulers)
                            all.push_back(
                                group(p, n, m, way, s, s == schedulers.front(), options, notes));
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            auto shown =
                by_runtime(got, fmt::format("completion: ns per worker, {}", conditions(got, p)),
                           {{"fibers", "workers"},
                            {"steps", "steps"},
                            {"way", "way"},
                            {"schedulers", "schedulers"}},
                           "ns_per_op", which);
            shown.notes = ratios(got, "ns_per_op", "steps", "steps", which);
            made.tables.push_back(std::move(shown));
            made.charts.push_back(bars(got, fmt::format("completion, {}", count(p, "processor")),
                                       "ns_per_op", "ns per worker", which, [](const cell& one) {
                                           return fmt::format(
                                               "{} \u00d7 {}, {}, {}", human(one.fibers()),
                                               human(one.settings["steps"].get<std::uint64_t>()),
                                               one.settings["way"].get<std::string>(),
                                               one.settings["schedulers"].get<std::uint64_t>());
                                       }));
        }
        return made;
    }

private:
    setting group(std::uint64_t processors, std::uint64_t workers, std::uint64_t steps,
                  const std::string& way, std::uint64_t schedulers, bool is_first,
                  const bench_options& options, std::vector<std::string>& notes) const {
        setting made;
        for (const auto& runtime : chosen(options, notes)) {
            if (runtime == "std::thread" && !is_first) continue;  // It has no schedulers.
            auto one = way_cell(options, runtime, way, processors, workers);
            one.settings["steps"] = steps;
            one.settings["schedulers"] = schedulers;
            one.args.push_back(fmt::format("steps={}", steps));
            one.args.push_back(fmt::format("schedulers={}", schedulers));
            made.push_back(std::move(one));
        }
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_completion() { return std::make_unique<completion>(); }

}  // namespace tool
