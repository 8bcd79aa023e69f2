// SPDX-License-Identifier: MIT

// sleepers: N fibers sleep a random time of up to two seconds: none may wake early, and how late do
// they wake?

#include <fmt/format.h>

#include <algorithm>

#include "../compare.hpp"

namespace tool {

namespace {

constexpr std::uint64_t most_threads = 10'000;

class sleepers final : public workload {
public:
    std::string_view name() const override { return "sleepers"; }
    std::string_view about() const override {
        return "fibers that sleep a random time of up to 2 s: how late they wake";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "go", "ums"};
    }
    unsigned repetitions(const bench_options&) const override { return 3; }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const auto n : given_or(options.fibers, {0})) {  // 0: each runtime's own number.
                setting group;
                for (const auto& runtime : chosen(options, notes)) {
                    const auto fibers = how_many(runtime, n, options.quick);
                    if (n == 0 &&
                        !fits(runtime, fibers, runtime == "boost.fiber" ? 16'000 : 6000, notes))
                        continue;
                    auto one = make_cell(runtime, p, fibers);
                    if (options.quick) one.args.push_back("longest_ms=200");
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
    static std::uint64_t how_many(const std::string& runtime, std::uint64_t given, bool quick) {
        if (runtime == "std::thread")
            return std::min(most_threads, given != 0 ? given : quick ? 1000 : most_threads);
        if (given != 0) return given;
        if (quick) return 10'000;
        return runtime == "boost.fiber" ? 100'000 : 1'000'000;
    }
};

}  // namespace

std::unique_ptr<workload> make_sleepers() { return std::make_unique<sleepers>(); }

}  // namespace tool
