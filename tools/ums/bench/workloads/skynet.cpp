// SPDX-License-Identifier: MIT

// skynet: a tree of fibers, ten children each, a million leaves; the sum of the leaves is checked.

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "../../usage.hpp"
#include "../compare.hpp"

namespace tool {

namespace {

// A tree of kernel threads this large takes a tenth of a second; a thousand times as many threads
// cannot exist.
constexpr std::uint64_t most_threads = 1000;

bool is_power_of_ten(std::uint64_t n) {
    assert(n != 0 && "zero would be divided by ten for ever");
    while (n % 10 == 0) n /= 10;
    return n == 1;
}

class skynet final : public workload {
public:
    std::string_view name() const override { return "skynet"; }
    std::string_view about() const override {
        return "a tree of fibers, ten children each, 1,000,000 leaves";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "go", "ums"};
    }

    void check(const bench_options& options) const override {
        workload::check(options);
        for (const auto n : options.fibers)
            if (!is_power_of_ten(n))
                throw usage_error{fmt::format(
                    "--fibers: skynet's leaves are a power of ten, such as 1000000, got '{}'", n)};
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, {options.quick ? 10'000U : 1'000'000U})) {
                setting group;
                for (const auto& runtime : chosen(options, notes)) {
                    const bool is_native = runtime == "std::thread";
                    auto one = make_cell(runtime, p, is_native ? std::min(n, most_threads) : n);
                    one.probe_args = {
                        fmt::format("fibers={}", std::min<std::uint64_t>(n, 100'000))};
                    if (runtime == "ums") one.variants = {{"launch=dispatch"}, {"launch=post"}};
                    if (runtime.starts_with("boost.fiber") && p == 1)
                        one.variants = {{"stack=fixed"}, {"stack=pooled"}};
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
            auto shown = by_figure(
                got, fmt::format("skynet: {}", conditions(got, p)), {{"fibers", "leaves"}},
                {{"total_ns", "total, ms", [](double ns) { return human(ns / 1e6); }},
                 {"ns_per_op", "ns per leaf"},
                 {"peak_rss_bytes", "peak memory", human_bytes}},
                which);
            shown.notes = ratios(got, "ns_per_op", "processors", "", which);
            made.tables.push_back(std::move(shown));
            made.charts.push_back(bars(
                got, fmt::format("skynet, {}", count(p, "processor")), "ns_per_op", "ns per leaf",
                which, [](const cell& one) { return human(one.fibers()) + " leaves"; }));
            // The first runtime is the native thread, which has fewer leaves: name the groups after
            // the others.
            for (std::size_t i = 0, g = 0; g < got.plan.size(); ++g)
                if (!got.plan[g].empty() && which(got.plan[g].front())) {
                    assert(i < made.charts.back().labels.size() && "a group of bars has no label");
                    made.charts.back().labels[i++] = human(got.plan[g].back().fibers()) + " leaves";
                }
        }
        if (!got.plan.empty() && got.plan.front().front().runtime == "std::thread")
            made.tables.back().notes.push_back(
                fmt::format("std::thread: at most {} leaves; every inner thread and its children "
                            "exist at once.",
                            human(most_threads)));
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_skynet() { return std::make_unique<skynet>(); }

}  // namespace tool
