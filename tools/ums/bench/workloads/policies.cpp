// SPDX-License-Identifier: MIT

// migrate, policies, jobs and shares: the built-in policies of ums beside each other, each as a
// runtime of its own, and beside the schedulers of Boost.Fiber and Go, which have no such names.
// ums alone is the default, work stealing; boost.fiber alone its usual scheduler (round_robin on
// one processor, work_stealing on several).

#include <fmt/format.h>

#include <array>

#include "../../usage.hpp"
#include "../compare.hpp"
#include "../peer.hpp"

namespace tool {

namespace {

constexpr std::string_view shared_work = " shared_work";

class by_policy : public workload {
public:
    std::vector<std::string> runtimes() const override {
        return {"ums",
                "ums global_fifo",
                "ums local_locked",
                "ums local_mpsc",
                "ums local_mpsc_intrusive",
                "ums priority",
                "ums earliest_deadline_first",
                "ums fair_share"};
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 2 : 5;
    }

protected:
    std::string program(const std::string& runtime) const override {
        if (runtime.starts_with("ums")) return program_of(name(), "ums");
        return program_of(name(), runtime.substr(0, runtime.find(shared_work)));
    }

    cell policy_cell(const std::string& runtime, std::uint64_t processors, std::uint64_t fibers,
                     const bench_options& options) const {
        auto one = make_cell(runtime, processors, fibers);
        if (runtime.starts_with("ums "))
            one.args.push_back("policy=" + runtime.substr(4));
        else if (runtime.ends_with(shared_work))
            one.args.push_back("policy=shared_work");
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
        notes.push_back("Boost.Fiber and Go have no clusters between which a fiber could go.");
        return all;
    }

    view show(const result& got) const override {
        view made;
        made.tables.push_back(by_runtime(
            got,
            fmt::format("migrate: migrations per second, two clusters of so many processors, {}",
                        repetitions_of(got)),
            {{"processors", "processors of each"}, {"fibers", "fibers"}}, "ops_per_s",
            everything()));
        auto plot =
            lines(got, "migrate: ns per migration", "ns_per_op", "ns per migration", everything());
        // The chart is against the number of processors, not of fibers.
        plot.x_title = "processors of each cluster";
        for (auto& line : plot.all) {
            std::size_t i = 0;
            for (const auto& group : got.plan)
                for (const auto& one : group)
                    if (one.runtime == line.runtime && one.figure("ns_per_op") &&
                        i < line.points.size())
                        line.points[i++].x = one.settings["processors"].get<double>();
        }
        made.charts.push_back(std::move(plot));
        return made;
    }
};

// Work in several ways, of which a table for each figure has a column each.
class ways_by_policy : public by_policy {
public:
    std::vector<std::string> runtimes() const override {
        std::vector<std::string> all{"boost.fiber", "boost.fiber shared_work", "boost.fiber static",
                                     "boost.fiber static shared_work", "go"};
        for (auto& one : by_policy::runtimes()) all.push_back(std::move(one));
        return all;
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto& way : ways(p, notes))
                for (const auto n : given_or(options.fibers, {fibers(way)})) {
                    setting group;
                    for (const auto& runtime : chosen(options, notes)) {
                        if (!has_way(runtime, way, notes)) continue;
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
            for (const auto& [key, title, is_drawn] : figures()) {
                auto shown = by_way(
                    got, fmt::format("{}: {}, {}", name(), title, conditions(got, p)), key, which);
                if (shown.rows.empty()) continue;
                made.tables.push_back(std::move(shown));
                if (is_drawn)
                    made.charts.push_back(bars(
                        got, fmt::format("{}: {}, {}", name(), title, count(p, "processor")), key,
                        title, which,
                        [](const cell& one) { return one.settings["way"].get<std::string>(); }));
            }
        }
        return made;
    }

protected:
    struct shown_figure {
        std::string key, title;
        bool is_drawn = true;  // Not if it may be 0: the axes are logarithmic.
    };
    virtual std::vector<std::string> ways(std::uint64_t processors,
                                          std::vector<std::string>& notes) const = 0;
    virtual bool has_way(const std::string&, const std::string&, std::vector<std::string>&) const {
        return true;
    }
    virtual std::uint64_t fibers(const std::string& way) const = 0;
    virtual std::vector<shown_figure> figures() const = 0;
};

class policies final : public ways_by_policy {
public:
    std::string_view name() const override { return "policies"; }
    std::string_view about() const override {
        return "seven shapes of work by policy, and how soon an urgent fiber runs meanwhile";
    }

    void check(const bench_options& options) const override {
        workload::check(options);
        for (const auto n : options.fibers)
            if (n % 10 != 0)
                throw usage_error{fmt::format(
                    "--fibers: rings of five and halves take a multiple of 10, not {}", n)};
    }

protected:
    std::vector<std::string> ways(std::uint64_t processors,
                                  std::vector<std::string>& notes) const override {
        if (processors > 1)
            return {"cycle", "yield", "churn", "locality", "transfer", "locks", "load", "outside"};
        notes.push_back(
            "transfer takes two processors, because its leader computes until all "
            "others have run: --processors 2");
        return {"cycle", "yield", "churn", "locality", "locks", "load", "outside"};
    }
    bool has_way(const std::string& runtime, const std::string& way,
                 std::vector<std::string>& notes) const override {
        if (way == "outside" && runtime == "go") {
            notes.push_back("go has no outside: no thread is outside of its scheduler.");
            return false;
        }
        if (way != "transfer" || !runtime.starts_with("boost") || runtime.ends_with(shared_work))
            return true;
        notes.push_back(runtime +
                        " has no transfer: it would not end. A thief of work_stealing "
                        "takes nothing while the first fiber of a queue is the busy "
                        "thread's own dispatcher.");
        return false;
    }
    std::uint64_t fibers(const std::string&) const override { return 100; }
    std::vector<shown_figure> figures() const override {
        return {{"ns_per_op", "ns per operation"},
                {"wake_p50_us", "an urgent fiber runs after, us, median"},
                {"wake_p99_us", "an urgent fiber runs after, us, 99th of 100"}};
    }
};

class jobs final : public ways_by_policy {
public:
    std::string_view name() const override { return "jobs"; }
    std::string_view about() const override {
        return "short requests among long ones, and periodic jobs with deadlines, by policy";
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 2 : 3;
    }
    void check(const bench_options& options) const override {
        workload::check(options);
        for (const auto n : options.fibers)
            if (n < 2) throw usage_error{"--fibers: jobs has short and long ones, not 1"};
    }

protected:
    std::vector<std::string> ways(std::uint64_t, std::vector<std::string>&) const override {
        return {"requests", "deadlines"};
    }
    std::uint64_t fibers(const std::string& way) const override {
        return way == "requests" ? 100 : 10;
    }
    std::vector<shown_figure> figures() const override {
        return {{"short_p50_us", "a short job takes, us, median"},
                {"short_p99_us", "a short job takes, us, 99th of 100"},
                {"long_p99_us", "a long job takes, us, 99th of 100"},
                {"late", "late jobs, as a share of all", false}};
    }
};

class shares final : public ways_by_policy {
public:
    std::string_view name() const override { return "shares"; }
    std::string_view about() const override {
        return "fibers of different weights: how far what each gets is from its weight";
    }
    std::vector<std::string> runtimes() const override { return {"ums", "ums fair_share"}; }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 2 : 5;
    }
    void check(const bench_options& options) const override {
        workload::check(options);
        if (!options.fibers.empty()) throw usage_error{"--fibers: shares has no such setting"};
    }

protected:
    std::vector<std::string> ways(std::uint64_t processors,
                                  std::vector<std::string>& notes) const override {
        if (processors == 1) return {"fibers", "groups"};
        notes.push_back("shares is measured on one processor only, for which all compete.");
        return {};
    }
    std::uint64_t fibers(const std::string& way) const override { return way == "fibers" ? 6 : 21; }
    std::vector<shown_figure> figures() const override {
        return {{"share_error", "the largest error of a share, as a part of it"}};
    }
};

}  // namespace

std::unique_ptr<workload> make_migrate() { return std::make_unique<migrate>(); }
std::unique_ptr<workload> make_policies() { return std::make_unique<policies>(); }
std::unique_ptr<workload> make_jobs() { return std::make_unique<jobs>(); }
std::unique_ptr<workload> make_shares() { return std::make_unique<shares>(); }

}  // namespace tool
