// SPDX-License-Identifier: MIT

// Two fibers wake each other in turn, by the primitive that the bench is named after. A round trip
// is two wake-ups.

#include <fmt/format.h>

#include "../../usage.hpp"
#include "../compare.hpp"

namespace tool {

namespace {

class round_trips final : public workload {
public:
    round_trips(std::string_view name, std::string_view about, std::vector<std::string> runtimes,
                std::string_view note = "")
        : name_{name}, about_{about}, note_{note}, runtimes_{std::move(runtimes)} {}

    std::string_view name() const override { return name_; }
    std::string_view about() const override { return about_; }
    std::vector<std::string> runtimes() const override { return runtimes_; }

    // Semaphores cost the same with any detector.
    bool has_detectors() const override { return name_ == "pingpong"; }

    void check(const bench_options& options) const override {
        workload::check(options);
        if (!options.fibers.empty() && options.fibers != std::vector<std::uint64_t>{2})
            throw usage_error{fmt::format("--fibers: {} always has 2", name_)};
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
        auto shown =
            by_runtime(got, fmt::format("{}: ns per round trip, {}", name_, repetitions_of(got)),
                       {{"processors", "processors"}}, "ns_per_op", everything());
        shown.notes = ratios(got, "ns_per_op", "processors",
                             got.options.processors.size() > 1 ? "processor" : "", everything());
        if (!note_.empty()) shown.notes.emplace_back(note_);
        made.tables.push_back(std::move(shown));
        made.charts.push_back(
            bars(got, "round trip", "ns_per_op", "ns per round trip", everything(),
                 [](const cell& one) { return count(one.processors, "processor"); }));
        return made;
    }

private:
    std::string_view name_, about_, note_;
    std::vector<std::string> runtimes_;
};

}  // namespace

std::unique_ptr<workload> make_pingpong() {
    return std::make_unique<round_trips>(
        "pingpong", "two fibers wake each other in turn: park and unpark, channels, semaphores",
        std::vector<std::string>{"std::thread", "boost.fiber", "boost.fiber static", "go", "ums"});
}

std::unique_ptr<workload> make_semaphore() {
    return std::make_unique<round_trips>(
        "semaphore", "two fibers wake each other in turn over two semaphores",
        std::vector<std::string>{"std::thread", "boost.fiber", "boost.fiber static", "ums"},
        "boost.fiber has none: a count under its mutex with its condition variable.");
}

}  // namespace tool
