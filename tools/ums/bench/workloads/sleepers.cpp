// SPDX-License-Identifier: MIT

// sleepers: N fibers sleep a random time of up to two seconds. None may wake early; how late do
// they wake?

#include <fmt/format.h>

#include "../compare.hpp"
#include "crowd.hpp"

namespace tool {

namespace {

class sleepers final : public crowd {
public:
    std::string_view name() const override { return "sleepers"; }
    std::string_view about() const override {
        return "fibers that sleep a random time of up to 2 s: how late they wake";
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            made.tables.push_back(by_figure(got, fmt::format("sleepers: {}", conditions(got, p)),
                                            {{"fibers", "fibers"}},
                                            {{"lateness_p50_us", "late p50, us"},
                                             {"lateness_p99_us", "p99, us"},
                                             {"lateness_max_us", "max, us"},
                                             {"cpu_us_per_op", "CPU us each"}},
                                            which));
            made.tables.back().notes.push_back("No sleeper woke early, or its row would say so.");
            made.charts.push_back(bars(got, fmt::format("sleepers, {}", count(p, "processor")),
                                       "lateness_p99_us", "lateness p99, us", which,
                                       [](const cell&) { return std::string{"late"}; }));
        }
        return made;
    }

private:
    std::uint64_t own_number(const std::string& runtime) const override {
        return runtime == "boost.fiber" ? 100'000 : 1'000'000;
    }
    std::vector<std::string> more(const bench_options& options) const override {
        if (!options.quick) return {};
        return {"longest_ms=200"};
    }
};

}  // namespace

std::unique_ptr<workload> make_sleepers() { return std::make_unique<sleepers>(); }

}  // namespace tool
