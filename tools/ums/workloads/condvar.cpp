// SPDX-License-Identifier: MIT

// condvar: two fibers take turns under a mutex; one wakes all of many.

#include <fmt/format.h>

#include "../compare.hpp"

namespace tool {

namespace {

class condvar final : public workload {
public:
    std::string_view name() const override { return "condvar"; }
    std::string_view about() const override {
        return "mutex and condition variable: round trips, and notify_all";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "go", "ums"};
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors) {
            // A round trip is of two; --fibers is the number of waiters.
            all.push_back(group("round_trip", p, 2, options, notes));
            for (const auto n : given_or(options.fibers, {100}))
                all.push_back(group("notify_all", p, n, options, notes));
        }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            auto shown =
                by_runtime(got,
                           fmt::format("condvar: ns per round trip, per waiter of notify_all, {}",
                                       conditions(got, p)),
                           {{"way", "way"}, {"fibers", "fibers"}}, "ns_per_op", which);
            shown.notes = ratios(got, "ns_per_op", "way", " ", which);
            made.tables.push_back(std::move(shown));
            made.charts.push_back(bars(
                got, fmt::format("condvar, {}", count(p, "processor")), "ns_per_op",
                "ns per round trip, per waiter", which, [](const cell& one) {
                    return one.settings["way"] == "round_trip" ? std::string{"round trip"}
                                                               : human(one.fibers()) + " waiters";
                }));
        }
        return made;
    }

private:
    setting group(const std::string& way, std::uint64_t processors, std::uint64_t fibers,
                  const bench_options& options, std::vector<std::string>& notes) const {
        setting made;
        for (const auto& runtime : chosen(options, notes))
            made.push_back(way_cell(options, runtime, way, processors, fibers));
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_condvar() { return std::make_unique<condvar>(); }

}  // namespace tool
