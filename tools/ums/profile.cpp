// SPDX-License-Identifier: MIT
#include "profile.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "inspect/live_process.hpp"
#include "inspect/symbols.hpp"
#include "output_file.hpp"
#include "profile/profile_data.hpp"
#include "profile/sampler.hpp"
#include "usage.hpp"

namespace tool {

using namespace inspect;
using namespace profiling;

namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

struct line {
    std::int64_t self = 0, with_calls = 0;
};

// Prints the functions that took most time, alone and together with what they called.
void print_functions(const profile_data& p, bool on_cpu) {
    std::map<std::string, line> lines;
    for (const sample& s : p.samples) {
        if (s.is_on_cpu != on_cpu || s.frames.empty()) continue;
        std::set<std::string> seen;
        for (const frame& f : s.frames)
            if (seen.insert(f.function).second) lines[f.function].with_calls += s.ns;
        lines[s.frames.back().function].self += s.ns;
    }
    std::vector<std::pair<std::string, line>> sorted{lines.begin(), lines.end()};
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return std::tuple{a.second.self, a.second.with_calls, b.first} >
               std::tuple{b.second.self, b.second.with_calls, a.first};
    });
    constexpr std::size_t most = 12;
    if (sorted.size() > most) sorted.resize(most);
    const double all = std::max(1e-9, seconds(p.total_ns(on_cpu)));
    fmt::print("{:>9} {:>6} {:>9} {:>6}  {}\n", "ITSELF", "", "WITH CALLS", "", "FUNCTION");
    for (const auto& [name, l] : sorted)
        fmt::print("{:>8.2f}s {:>5.1f}% {:>8.2f}s {:>6.1f}%  {}\n", seconds(l.self),
                   100 * seconds(l.self) / all, seconds(l.with_calls),
                   100 * seconds(l.with_calls) / all, name.substr(0, 100));
}

// The share that n samples give is off by at most 1 / sqrt(n), in 19 of 20 profiles.
void say_if_few(const profile_data& p) {
    constexpr std::uint64_t enough = 100;
    std::uint64_t n = 0;
    for (const sample& s : p.samples)
        if (s.is_on_cpu) n += s.count;
    if (n == 0)
        fmt::print("no samples: nothing ran when the command looked\n");
    else if (n < enough)
        fmt::print("few samples ({}): a share may be off by {:.0f} points; look for {:.0f} s\n", n,
                   100 / std::sqrt(double(n)),
                   std::ceil(seconds(p.duration_ns) * double(enough) / double(n)));
}

void print_summary(const profile_data& p, bool on_cpu, bool off_cpu) {
    fmt::print("{}: {:.1f} s\n", p.title, seconds(p.duration_ns));
    if (on_cpu) {
        fmt::print(
            "on CPU: {:.2f} s in samples; the kernel counted {:.2f} s. Threads were stopped {} "
            "times, {:.0f} us each\n",
            seconds(p.total_ns(true)), seconds(p.cpu_ns), p.stops,
            p.stops != 0 ? static_cast<double>(p.stopped_ns) / 1e3 / double(p.stops) : 0);
        say_if_few(p);
        if (p.total_ns(true) != 0) print_functions(p, true);
    }
    if (!off_cpu) return;
    std::map<std::string, std::int64_t> waits;
    for (const sample& s : p.samples)
        if (!s.is_on_cpu) waits[s.frames.back().function] += s.ns;
    std::vector<std::pair<std::int64_t, std::string>> sorted;
    for (const auto& [what, ns] : waits) sorted.emplace_back(ns, what);
    std::sort(sorted.rbegin(), sorted.rend());
    fmt::print("{}off CPU: {:.2f} s of all fibers, seen by {} looks\n", on_cpu ? "\n" : "",
               seconds(p.total_ns(false)), p.looks_off_cpu);
    constexpr std::uint64_t enough = 10;
    if (p.looks_off_cpu < enough)
        fmt::print("few looks: waits shorter than {:.1f} s may be missing\n",
                   seconds(p.duration_ns) / double(std::max<std::uint64_t>(p.looks_off_cpu, 1)));
    const double all = std::max(1e-9, seconds(p.total_ns(false)));
    for (const auto& [ns, what] : sorted)
        fmt::print("{:>8.2f}s {:>5.1f}%  {}\n", seconds(ns), 100 * seconds(ns) / all, what);
}

}  // namespace

void add_profile(CLI::App& app, profile_request& asked) {
    auto* const p = app.add_subcommand(
        "profile", "where fibers spend their time, on CPUs and in waits; as pprof and flame graph");
    p->add_option("target", asked.target, "a process's number")->required()->type_name("PID");
    p->add_option("--seconds", asked.seconds, "how long to look, 0.1 to 86400 (default 10)")
        ->type_name("S")
        ->check(CLI::Range(0.1, 86400.0).description(""));
    p->add_option(
         "--frequency", asked.frequency,
         "how many times a second to look at what is on CPUs, 1 to 1000 (default 99); each "
         "look stops the threads that run for some microseconds")
        ->type_name("HZ")
        ->check(CLI::Range(1.0, 1000.0).description(""));
    p->add_option("--kind", asked.kind, "on (CPUs), off (in waits; stops nothing), all (default)")
        ->type_name("on|off|all");
    p->add_option("--pprof", asked.pprof, "write it for go tool pprof")->type_name("FILE");
    p->add_option("--folded", asked.folded, "write folded stacks, in microseconds")
        ->type_name("FILE");
    p->add_option("--html", asked.html, "write a flame graph, a page that needs no network")
        ->type_name("FILE");
}

int profile(const profile_request& asked) {
    if (asked.kind != "on" && asked.kind != "off" && asked.kind != "all")
        throw usage_error{fmt::format("--kind: '{}' is none of on, off, all", asked.kind)};
    const bool on = asked.kind != "off", off = asked.kind != "on";
    const auto target = open_process(asked.target, false);
    const auto* live = dynamic_cast<const live_process*>(target.get());
    if (live == nullptr) throw usage_error{"profile: a core file does nothing: use ums stack"};
    // These find out before the wait whether the files can be written.
    std::optional<output_file> pprof, folded, html;
    if (!asked.pprof.empty()) pprof.emplace("--pprof", asked.pprof);
    if (!asked.folded.empty()) folded.emplace("--folded", asked.folded);
    if (!asked.html.empty()) html.emplace("--html", asked.html);
    const layout how{*target};
    symbols names{*target};
    const profile_data seen =
        sampler{*live, how, names}.run(asked.seconds, asked.frequency, on, off);
    if (pprof) pprof->write(to_pprof(seen));
    if (folded) folded->write(to_folded(seen));
    if (html) html->write(to_html(seen));
    print_summary(seen, on, off);
    return 0;
}

}  // namespace tool
