// SPDX-License-Identifier: MIT

// channel: a round trip without places, and the throughput with 64 places and without a bound.

#include <fmt/format.h>

#include "../../usage.hpp"
#include "../compare.hpp"

namespace tool {

namespace {

class channel final : public workload {
public:
    std::string_view name() const override { return "channel"; }
    std::string_view about() const override {
        return "unbuffered round trips; items through buffered and unbounded channels";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "go", "ums"};
    }

    void check(const bench_options& options) const override {
        workload::check(options);
        for (const auto n : options.fibers)
            if (n % 2 != 0 || n > 1'000'000)
                throw usage_error{fmt::format(
                    "--fibers: half of them send and half receive, so an even number, not {}", n)};
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors) {
            all.push_back(group("unbuffered", p, 2, options, notes));
            for (const std::string way : {"buffered", "unbounded"})
                for (const auto n : given_or(options.fibers, {2, 8}))
                    all.push_back(group(way, p, n, options, notes));
        }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            auto shown =
                by_runtime(got,
                           fmt::format("channel: ns per round trip (unbuffered) or item, {}",
                                       conditions(got, p)),
                           {{"way", "way"}, {"fibers", "fibers"}}, "ns_per_op", which);
            shown.notes = ratios(got, "ns_per_op", "way", " ", which);
            shown.notes.push_back("std::thread: a queue under a mutex with condition variables.");
            made.tables.push_back(std::move(shown));
            made.charts.push_back(
                bars(got, fmt::format("channel, {}", count(p, "processor")), "ns_per_op",
                     "ns per round trip or item", which, [](const cell& one) {
                         return fmt::format("{}, {}:{}", one.settings["way"].get<std::string>(),
                                            one.fibers() / 2, one.fibers() / 2);
                     }));
        }
        return made;
    }

private:
    setting group(const std::string& way, std::uint64_t processors, std::uint64_t fibers,
                  const bench_options& options, std::vector<std::string>& notes) const {
        setting made;
        for (const auto& runtime : chosen(options, notes)) {
            const bool has_unbounded = runtime == "std::thread" || runtime == "ums";
            if (way == "unbounded" && !has_unbounded) continue;
            made.push_back(way_cell(options, runtime, way, processors, fibers));
        }
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_channel() { return std::make_unique<channel>(); }

}  // namespace tool
