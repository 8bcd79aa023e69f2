// SPDX-License-Identifier: MIT
#include "summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <tuple>

#include "../inspect/printable.hpp"
#include "../inspect/wait_words.hpp"
#include "record.hpp"

namespace tool::tracing {

namespace {

std::string in_words(std::int64_t ns) {
    if (ns < 10'000) return fmt::format("{} ns", ns);
    if (ns < 10'000'000) return fmt::format("{} us", ns / 1000);
    if (ns < 10'000'000'000) return fmt::format("{} ms", ns / 1'000'000);
    return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
}

struct distribution {
    std::size_t count = 0;
    std::int64_t median = 0, p90 = 0, p99 = 0, most = 0;
};

distribution of(std::vector<std::int64_t> all) {
    distribution d;
    d.count = all.size();
    if (all.empty()) return d;
    std::sort(all.begin(), all.end());
    const auto at = [&](std::size_t hundredths) {
        assert(hundredths <= 100 && "a part is more than the whole");
        return all[(all.size() - 1) * hundredths / 100];
    };
    d.median = at(50);
    d.p90 = at(90);
    d.p99 = at(99);
    d.most = all.back();
    return d;
}

void print_line(const char* what, const distribution& d) {
    fmt::print("{:<18} {:>10} {:>10} {:>10} {:>10} {:>10}\n", what, d.count, in_words(d.median),
               in_words(d.p90), in_words(d.p99), in_words(d.most));
}

// The kind of a wait: what stands before the address or the number.
std::string kind_of(std::string_view wait) {
    if (wait.ends_with("readable")) return "readable";
    if (wait.ends_with("writable")) return "writable";
    return std::string{wait.substr(0, wait.find(' '))};
}

}  // namespace

void summary::fiber(std::uint64_t id, std::string_view, std::string_view start) {
    group& g = groups_[start.empty() ? std::string{"(made before)"} : std::string{start}];
    ++g.fibers;
    group_of_[id] = &g;
}

void summary::add(const span& s) {
    group*& g = group_of_[s.fiber];
    if (g == nullptr) g = &groups_["(made before)"];
    const std::int64_t ns = s.end - s.begin;
    switch (s.does) {
        case fiber_does::runs:
            ++g->runs;
            g->runs_ns = added(g->runs_ns, ns);
            break;
        case fiber_does::was_woken:
            woken_to_run_.push_back(ns);
            [[fallthrough]];
        case fiber_does::is_ready:
            in_queue_.push_back(ns);
            g->ready_ns = added(g->ready_ns, ns);
            break;
        case fiber_does::waits: {
            std::int64_t& all = g->waits_ns[kind_of(s.waits_for)];
            all = added(all, ns);
            break;
        }
        case fiber_does::is_blocked:
            g->blocked_ns = added(g->blocked_ns, ns);
            break;
    }
}

void summary::print() const {
    fmt::print("{:<18} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "", "COUNT", "MEDIAN", "90 %", "99 %",
               "MOST");
    print_line("in the run queue", of(in_queue_));
    print_line("from wake to run", of(woken_to_run_));
    std::vector<const std::pair<const std::string, group>*> sorted;
    for (const auto& one : groups_) sorted.push_back(&one);
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
        return std::tie(b->second.runs_ns, a->first) < std::tie(a->second.runs_ns, b->first);
    });
    fmt::print("\n{:>8} {:>9} {:>9} {:>9} {:>9}  {}\n", "FIBERS", "TIMES RUN", "RUNS", "READY",
               "BLOCKED", "START, AND WHAT IT WAITS FOR");
    for (const auto* one : sorted) {
        const group& g = one->second;
        fmt::print("{:>8} {:>9} {:>9} {:>9} {:>9}  {}\n", g.fibers, g.runs, in_words(g.runs_ns),
                   in_words(g.ready_ns), in_words(g.blocked_ns),
                   inspect::printable(one->first).substr(0, 70));
        for (const auto& [kind, ns] : g.waits_ns)
            fmt::print("{:>48}  {}: {}\n", "", inspect::printable(kind), in_words(ns));
    }
}

std::string summary::json() const {
    const auto numbers = [](const std::vector<std::int64_t>& all) {
        const distribution d = of(all);
        return nlohmann::json{{"count", d.count},
                              {"median_ns", d.median},
                              {"p90_ns", d.p90},
                              {"p99_ns", d.p99},
                              {"most_ns", d.most}};
    };
    nlohmann::json all{{"in_run_queue", numbers(in_queue_)},
                       {"wake_to_run", numbers(woken_to_run_)}};
    all["starts"] = nlohmann::json::array();
    for (const auto& [start, g] : groups_)
        all["starts"].push_back({{"start", start},
                                 {"fibers", g.fibers},
                                 {"runs", g.runs},
                                 {"runs_ns", g.runs_ns},
                                 {"ready_ns", g.ready_ns},
                                 {"blocked_ns", g.blocked_ns},
                                 {"waits_ns", g.waits_ns}});
    return all.dump(1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace tool::tracing
