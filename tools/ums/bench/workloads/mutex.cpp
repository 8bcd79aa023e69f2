// SPDX-License-Identifier: MIT

// mutex: lock and unlock, by one fiber, and by many at once around sections of different lengths.

#include <fmt/format.h>

#include <array>

#include "../compare.hpp"

namespace tool {

namespace {

constexpr std::array sections_ns{0U, 100U, 1000U};

class mutex final : public workload {
public:
    std::string_view name() const override { return "mutex"; }
    std::string_view about() const override {
        return "lock and unlock: by one, and by many around short and long sections";
    }
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "go", "ums", "ums fair"};
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 2 : 3;
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<std::uint64_t> fibers{2, 10, 100, 1000};
        if (options.quick) fibers = {2, 100};
        fibers = given_or(options.fibers, fibers);
        std::vector<setting> all;
        for (const auto p : options.processors) {
            all.push_back(group("uncontended", p, 1, 0, options, notes));
            for (const auto n : fibers)
                for (const auto section : sections_ns) {
                    if (options.quick && section == 1000) continue;
                    all.push_back(group("contended", p, n, section, options, notes));
                }
            for (const auto n : fibers)
                all.push_back(group("contended_yield", p, n, 100, options, notes));
        }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            made.tables.push_back(speed(got, "uncontended", p));
            made.tables.push_back(speed(got, "contended", p));
            if (p == 1)
                made.tables.back().notes.push_back(
                    "On one processor only preemption brings two to the lock at once: fibers are "
                    "not preempted here.");
            made.tables.push_back(speed(got, "contended_yield", p));
            made.tables.back().notes.push_back(
                "The holder yields inside every 16th section, so that the others queue.");
            made.tables.push_back(shares(got, p));
            for (const auto section : sections_ns)
                made.charts.push_back(chart_of(got, "contended", p, section,
                                               fmt::format("contended, sections of {} ns, {}",
                                                           section, count(p, "processor"))));
            made.charts.push_back(chart_of(
                got, "contended_yield", p, 100,
                fmt::format("holder yields in every 16th section, {}", count(p, "processor"))));
        }
        std::erase_if(made.charts, [](const chart& one) { return one.all.empty(); });
        return made;
    }

private:
    setting group(const std::string& way, std::uint64_t processors, std::uint64_t fibers,
                  std::uint64_t section, const bench_options& options,
                  std::vector<std::string>& notes) const {
        setting made;
        for (const auto& runtime : chosen(options, notes)) {
            auto one = make_cell(runtime, processors, fibers);
            one.settings["section_ns"] = section;
            one.settings["way"] = way;
            one.args.push_back(fmt::format("section_ns={}", section));
            one.args.push_back("way=" + way);
            if (options.quick) one.args.push_back("min_ms=10");
            made.push_back(std::move(one));
        }
        return made;
    }

    static filter of(const std::string& way, std::uint64_t processors) {
        return [way = json(way), processors](const cell& one) {
            return one.processors == processors && one.settings["way"] == way;
        };
    }

    static table speed(const result& got, const std::string& way, std::uint64_t processors) {
        const auto which = of(way, processors);
        auto made = by_runtime(
            got, fmt::format("mutex, {}: ns per operation, {}", way, conditions(got, processors)),
            {{"fibers", "fibers"}, {"section_ns", "section ns"}}, "ns_per_op", which);
        made.notes = ratios(got, "ns_per_op", "fibers", "fiber", which);
        return made;
    }

    static table shares(const result& got, std::uint64_t processors) {
        const filter which = [processors](const cell& one) {
            return one.processors == processors && one.settings["way"] != "uncontended";
        };
        auto made = by_runtime(got,
                               fmt::format("mutex: among how many the lock went round, {}",
                                           conditions(got, processors)),
                               {{"way", "way"}, {"fibers", "fibers"}, {"section_ns", "section ns"}},
                               "sharers", which);
        made.notes.push_back("All fibers if all had it as often; 1 if one of them always.");
        return made;
    }

    static chart chart_of(const result& got, const std::string& way, std::uint64_t processors,
                          std::uint64_t section, std::string title) {
        return lines(got, std::move(title), "ns_per_op", "ns per operation",
                     [in = of(way, processors), section](const cell& one) {
                         return in(one) && one.settings["section_ns"] == section;
                     });
    }
};

}  // namespace

std::unique_ptr<workload> make_mutex() { return std::make_unique<mutex>(); }

}  // namespace tool
