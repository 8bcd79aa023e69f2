// SPDX-License-Identifier: MIT

// semaphore: two fibers wake each other in turn over two semaphores.

#include <fmt/format.h>

#include "../compare.hpp"
#include "../usage.hpp"

namespace tool {

namespace {

class semaphore final : public workload {
public:
    std::string_view name() const override { return "semaphore"; }
    std::string_view about() const override {
        return "two fibers wake each other in turn over two semaphores";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "ums"};
    }

    void check(const bench_options& options) const override {
        workload::check(options);
        if (!options.fibers.empty() && options.fibers != std::vector<std::uint64_t>{2})
            throw usage_error{"--fibers: semaphore always has 2"};
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors) {
            setting group;
            for (const auto& runtime : chosen(options, notes)) {
                auto one = make_cell(runtime, p, 2);
                if (options.quick) one.args.push_back("min_ms=20");
                group.push_back(std::move(one));
            }
            all.push_back(std::move(group));
        }
        return all;
    }

    view show(const result& got) const override {
        view made;
        auto shown = by_runtime(got, "semaphore: ns per round trip, " + repetitions_of(got),
                                {{"processors", "processors"}}, "ns_per_op", everything());
        shown.notes = ratios(got, "ns_per_op", "processors",
                             got.options.processors.size() > 1 ? "processor" : "", everything());
        shown.notes.push_back(
            "boost.fiber has none: a count under its mutex with its condition variable.");
        made.tables.push_back(std::move(shown));
        made.charts.push_back(
            bars(got, "round trip", "ns_per_op", "ns per round trip", everything(),
                 [](const cell& one) { return count(one.processors, "processor"); }));
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_semaphore() { return std::make_unique<semaphore>(); }

}  // namespace tool
