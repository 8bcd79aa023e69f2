// SPDX-License-Identifier: MIT

// completion: the test from the report on the Linux module: N workers that count, on some scheduler
// threads that share one completion list, beside the report's figures.

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "../compare.hpp"

namespace tool {

namespace {

// The report's seconds, on eight cores of an i9-9880H: when no worker yields, and when each yields
// first. Its switches took 2 to 5 us, and 700 us at worst when each worker yields.
struct published {
    std::uint64_t workers, steps, schedulers;
    double run, yield;
};
constexpr published report[] = {
    {1000, 5000, 1, 2.0, 2.1},      {1000, 5000, 8, 2.1, 2.2},
    {1000, 5000, 16, 2.1, 2.3},     {1000, 5'000'000, 1, 23.0, 23.7},
    {1000, 5'000'000, 8, 4.9, 6.1}, {1000, 5'000'000, 16, 4.9, 6.3},
    {10'000, 5000, 1, 9.3, 16},     {10'000, 5000, 8, 11.8, 21},
    {10'000, 5000, 16, 19.7, 27},   {10'000, 5'000'000, 1, 220.7, 231},
    {10'000, 5'000'000, 8, 31, 50}, {10'000, 5'000'000, 16, 31, 61},
};

std::uint64_t number(const cell& one, const char* key) {
    assert(one.settings.contains(key) && "a cell lacks a setting of its workload");
    return one.settings[key].get<std::uint64_t>();
}

std::optional<double> published_s(const cell& one) {
    for (const auto& row : report)
        if (row.workers == one.fibers() && row.steps == number(one, "steps") &&
            row.schedulers == number(one, "schedulers"))
            return one.settings["way"] == "yield" ? row.yield : row.run;
    return std::nullopt;
}

std::optional<spread> seconds(const cell& one) {
    const auto each = one.figure("ns_per_op");
    if (!each) return std::nullopt;
    const double n = static_cast<double>(one.fibers()) / 1e9;
    return spread{each->median * n, each->lowest * n, each->highest * n};
}

class completion final : public workload {
public:
    std::string_view name() const override { return "completion"; }
    std::string_view about() const override {
        return "N workers that count, on scheduler threads that share one completion list";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "thread pool", "ums-worker"};
    }
    // The longest cells take half a minute; running all 88 once takes eight minutes.
    unsigned repetitions(const bench_options&) const override { return 1; }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<std::uint64_t> workers{1000, 10'000}, schedulers{1, 2, 4, 8, 16};
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
            made.tables.push_back(table_of(got, p));
            made.charts.push_back(chart_of(got, p, "run", "none yields"));
            made.charts.push_back(chart_of(got, p, "yield", "each worker yields first"));
        }
        return made;
    }

private:
    table table_of(const result& got, std::uint64_t processors) const {
        table made;
        made.title = fmt::format("completion: seconds, {}", conditions(got, processors));
        made.labels = 4;
        made.header = {"workers", "steps", "way", "schedulers"};
        const auto names = runtimes();
        made.header.insert(made.header.end(), names.begin(), names.end());
        for (const auto* more : {"report", "switch us", "worst switch us"})
            made.header.push_back(more);
        for (const auto& group : got.plan) {
            if (group.empty() || !where("processors", processors)(group.front())) continue;
            const auto& first = group.front();
            std::vector<entry> row{{human(first.fibers()), "", false},
                                   {human(number(first, "steps")), "", false},
                                   {first.settings["way"].get<std::string>(), "", false},
                                   {human(number(first, "schedulers")), "", false}};
            const cell* worker = nullptr;
            for (const auto& name : names) {
                const auto at = std::find_if(group.begin(), group.end(),
                                             [&](const cell& one) { return one.runtime == name; });
                if (at != group.end() && name == "ums-worker") worker = &*at;
                if (at == group.end())
                    row.push_back({"-", "", false});
                else if (!at->error.empty())
                    row.push_back({"failed", "", true});
                else
                    row.push_back(entry_of(seconds(*at)));
            }
            const auto published = published_s(first);
            row.push_back({published ? human(*published) : "-", "", false});
            for (const auto* figure : {"switch_us", "worst_switch_us"})
                row.push_back(worker != nullptr ? entry_of(*worker, figure)
                                                : entry{"-", "", false});
            made.rows.push_back(std::move(row));
        }
        made.notes.push_back(
            "report: eight cores, where a switch takes 2 to 5 us, and 700 us at worst if each "
            "yields");
        return made;
    }

    // The runtimes and the report, with a group of bars for each number of workers, steps and
    // schedulers.
    chart chart_of(const result& got, std::uint64_t processors, const std::string& way,
                   const std::string& about) const {
        const filter which = [&](const cell& one) {
            return where("processors", processors)(one) && where("way", way)(one);
        };
        auto made =
            bars(got, fmt::format("completion, {}, {}", about, count(processors, "processor")),
                 "ns_per_op", "seconds", which, [](const cell& one) {
                     return fmt::format("{} \u00d7 {}, {}", human(one.fibers()),
                                        human(number(one, "steps")), number(one, "schedulers"));
                 });
        for (auto& each : made.all) each.points.clear();
        series published{"report", {}};
        double index = 0;
        for (const auto& group : got.plan) {
            if (group.empty() || !which(group.front())) continue;
            for (const auto& one : group) {
                const auto at =
                    std::find_if(made.all.begin(), made.all.end(),
                                 [&](const series& each) { return each.runtime == one.runtime; });
                if (const auto s = seconds(one); s && at != made.all.end())
                    at->points.push_back({index, *s});
            }
            if (const auto s = published_s(group.front()))
                published.points.push_back({index, {*s, *s, *s}});
            ++index;
        }
        if (!published.points.empty()) made.all.push_back(std::move(published));
        return made;
    }

    setting group(std::uint64_t processors, std::uint64_t workers, std::uint64_t steps,
                  const std::string& way, std::uint64_t schedulers, bool is_first,
                  const bench_options& options, std::vector<std::string>& notes) const {
        setting made;
        for (const auto& runtime : chosen(options, notes)) {
            if (runtime == "std::thread" && !is_first) continue;  // Threads have no schedulers.
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
