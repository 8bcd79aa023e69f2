// SPDX-License-Identifier: MIT

// ums: the published comparison of the UMS API: N threads of each kind, each gives up the processor M times.

#include <fmt/format.h>

#include <algorithm>

#include "../compare.hpp"
#include "../usage.hpp"

namespace tool {

namespace {

// What one cell may take in one repetition.
constexpr double budget_s = 1.5;

class ums_api final : public workload {
public:
    std::string_view name() const override { return "ums"; }
    std::string_view about() const override {
        return "N threads, fibers or workers of the UMS API, each yields M times";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "ums", "ums-worker"};
    }

    void check(const bench_options& options) const override {
        auto others = options;  // It has yields, as yield has; the rest is as everywhere.
        others.yields.clear();
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
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, fibers))
                for (const auto m : given_or(options.yields, yields)) {
                    setting group;
                    for (const auto& runtime : chosen(options, notes)) {
                        auto one = make_cell(runtime, p, n);
                        one.settings["yields"] = m;
                        one.yields = m;
                        one.budget_s = budget_s;
                        one.probe_args = {fmt::format("yields={}", std::min<std::uint64_t>(m, 100)),
                                          "min_ms=10"};
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
            auto shown =
                by_runtime(got, fmt::format("ums: ns per yield, {}", conditions(got, p)),
                           {{"fibers", "threads"}, {"yields", "yields each"}}, "ns_per_op", which);
            shown.notes = ratios(got, "ns_per_op", "fibers", "fiber", which);
            made.tables.push_back(std::move(shown));
            made.charts.push_back(bars(got, fmt::format("ums, {}", count(p, "processor")),
                                       "ns_per_op", "ns per yield", which, [](const cell& one) {
                                           return fmt::format(
                                               "{} \u00d7 {}", human(one.fibers()),
                                               human(one.settings["yields"].get<std::uint64_t>()));
                                       }));
            made.charts.back().x_title = "threads, fibers or workers \u00d7 yields each";
        }
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_ums() { return std::make_unique<ums_api>(); }

}  // namespace tool
