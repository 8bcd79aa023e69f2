// SPDX-License-Identifier: MIT

// migrate and policies: the built-in policies of ums beside each other. Each is a runtime of its
// own; ums alone is the default, work stealing.

#include <fmt/format.h>

#include <array>

#include "../compare.hpp"
#include "../peer.hpp"

namespace tool {

namespace {

class by_policy : public workload {
public:
    std::vector<std::string> runtimes() const override {
        return {"ums",           "ums global_fifo", "ums local_locked",            "ums local_mpsc",
                "ums local_mpsc_intrusive", "ums priority", "ums earliest_deadline_first", "ums fair_share"};
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 2 : 5;
    }

protected:
    std::string program(const std::string&) const override { return program_of(name(), "ums"); }

    cell policy_cell(const std::string& runtime, std::uint64_t processors, std::uint64_t fibers,
                     const bench_options& options) const {
        auto one = make_cell(runtime, processors, fibers);
        one.args.push_back("policy=" + (runtime == "ums" ? "work_stealing" : runtime.substr(4)));
        if (options.quick) one.args.push_back("min_ms=20");
        return one;
    }
};

class migrate final : public by_policy {
public:
    std::string_view name() const override { return "migrate"; }
    std::string_view about() const override {
        return "fibers that go to and fro between two clusters, by policy";
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, {options.quick ? 1000U : 10'000U})) {
                setting group;
                for (const auto& runtime : chosen(options, notes)) {
                    auto one = policy_cell(runtime, p, n * p, options);
                    // For each cluster; the peer gets CPUs for both.
                    one.args.push_back(fmt::format("processors={}", p));
                    one.processors = 2 * p;
                    group.push_back(std::move(one));
                }
                all.push_back(std::move(group));
            }
        return all;
    }

    view show(const result& got) const override {
        view made;
        made.tables.push_back(by_runtime(
            got, fmt::format("migrate: migrations per second, two clusters of so many processors, {}", repetitions_of(got)),
            {{"processors", "processors of each"}, {"fibers", "fibers"}}, "ops_per_s", everything()));
        auto plot = lines(got, "migrate: ns per migration", "ns_per_op", "ns per migration", everything());
        // The chart is against the number of processors, not of fibers.
        plot.x_title = "processors of each cluster";
        for (auto& line : plot.all) {
            std::size_t i = 0;
            for (const auto& group : got.plan)
                for (const auto& one : group)
                    if (one.runtime == line.runtime && one.figure("ns_per_op") && i < line.points.size())
                        line.points[i++].x = one.settings["processors"].get<double>();
        }
        made.charts.push_back(std::move(plot));
        return made;
    }
};

constexpr std::array ways{"cycle", "yield", "churn", "locality", "transfer", "locks"};

class policies final : public by_policy {
public:
    std::string_view name() const override { return "policies"; }
    std::string_view about() const override {
        return "six shapes of work by policy, and how soon an urgent fiber runs meanwhile";
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const std::string way : ways)
                for (const auto n : given_or(options.fibers, {100U})) {
                    setting group;
                    for (const auto& runtime : chosen(options, notes)) {
                        auto one = policy_cell(runtime, p, n, options);
                        one.settings["way"] = way;
                        one.args.push_back("way=" + way);
                        group.push_back(std::move(one));
                    }
                    all.push_back(std::move(group));
                }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            for (const auto& [figure, title] :
                 {std::pair{"ns_per_op", "ns per operation"}, std::pair{"wake_p50_us", "an urgent fiber runs after, us, median"},
                  std::pair{"wake_p99_us", "an urgent fiber runs after, us, 99th of 100"}}) {
                made.tables.push_back(by_runtime(got, fmt::format("policies: {}, {}", title, conditions(got, p)),
                                                 {{"way", "work"}, {"fibers", "fibers"}}, figure, which));
                made.charts.push_back(bars(got, fmt::format("policies: {}, {}", title, count(p, "processor")), figure,
                                           title, which,
                                           [](const cell& one) { return one.settings["way"].get<std::string>(); }));
            }
        }
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_migrate() { return std::make_unique<migrate>(); }
std::unique_ptr<workload> make_policies() { return std::make_unique<policies>(); }

}  // namespace tool
