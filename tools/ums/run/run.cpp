// SPDX-License-Identifier: MIT
#include "run.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "../inspect/printable.hpp"
#include "../machine.hpp"
#include "../output_file.hpp"
#include "looks.hpp"
#include "program.hpp"
#include "verdict.hpp"

namespace tool {

using namespace running;

namespace {

void stay_on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

double cpu_s() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// The CPU time of one wait of a thread at a condition variable, with its wake-up: two threads on
// one CPU wake each other. It takes some 10 ms.
double switch_s() {
    const int cpu = available_cpus().front();
    std::mutex mutex;
    std::condition_variable changed;
    int turn = 0;
    constexpr int rounds = 1000;
    const auto play = [&](int mine) {
        stay_on(cpu);
        for (int i = 0; i < rounds; ++i) {
            std::unique_lock lock{mutex};
            changed.wait(lock, [&] { return turn == mine; });
            turn = 1 - mine;
            changed.notify_one();
        }
    };
    const double before = cpu_s();
    std::thread first{play, 0}, second{play, 1};
    first.join();
    second.join();
    return (cpu_s() - before) / (2.0 * rounds);
}

counts watch(program& of) {
    counts all;
    looks at{of.pid()};
    while (!of.wait_for(at.look()))
        ;
    all.used = of.collect();
    all.kinds = at.kinds();
    all.ready = at.ready();
    all.any_ready = at.any_ready();
    all.runs = at.runs();
    all.most_threads = at.most_threads();
    all.looks = at.count();
    all.is_refused = at.is_refused();
    all.is_enough = at.is_enough();
    all.has_cxx = at.has_cxx();
    all.switch_s = switch_s();
    return all;
}

// The kinds of waits, the most frequent first, each with how many there were.
std::vector<std::pair<wait, double>> waits_of(const counts& all) {
    std::vector<std::pair<wait, double>> sorted;
    for (std::size_t i = 0; i < wait_count; ++i)
        if (all.kinds[i] > 0)
            sorted.emplace_back(static_cast<wait>(i), all.kinds[i] * all.voluntary());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return sorted;
}

std::string to_json(const std::string& name, const counts& all, const verdict& v) {
    nlohmann::json waits = nlohmann::json::object();
    for (const auto& [what, n] : waits_of(all)) waits[name_of(what)] = std::llround(n);
    const nlohmann::json j{{"program", name},
                           {"seconds", all.used.seconds},
                           {"cpu_s", all.cpu_s()},
                           {"system_s", all.used.system_s},
                           {"children_s", all.used.children_s},
                           {"most_threads", all.most_threads},
                           {"looks", all.looks},
                           {"voluntary", std::llround(all.voluntary())},
                           {"involuntary", std::llround(all.used.involuntary)},
                           {"waits", waits},
                           {"ready", all.ready},
                           {"any_ready", all.any_ready},
                           {"switch_ns", all.switch_s * 1e9},
                           {"in_switches", all.in_switches()},
                           {"saved_by_synchronisation", v.synchronisation},
                           {"saved_by_sockets", v.sockets},
                           {"gains", v.gains},
                           {"by", v.by},
                           {"lines", v.lines}};
    return j.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string in_words(const std::string& name, const counts& all, const verdict& v) {
    std::string waits;
    for (const auto& [what, n] : waits_of(all))
        waits += fmt::format("{}{} {:.0f}", waits.empty() ? "" : ", ", name_of(what), n);
    return fmt::format(
        "ums: {}: {:.1f} s, {:.2f} s of CPU time ({:.0f} % in the kernel), up to {} thread{}\n"
        "ums: {:.0f} waits, and {:.0f} switches by preemption; {:.1f} us for a wait's switches: "
        "{:.1f} % of the CPU time\n"
        "ums: waits by kind: {}\n"
        "ums: {:.1f} threads were ready when one waited; at {:.0f} % of the times none\n"
        "ums: {}\nums: {}\nums: {}\n",
        inspect::printable(name), all.used.seconds, all.cpu_s(),
        100 * all.used.system_s / std::max(all.cpu_s(), 1e-6), all.most_threads,
        all.most_threads == 1 ? "" : "s", all.voluntary(), all.used.involuntary, all.switch_s * 1e6,
        100 * all.in_switches(), waits.empty() ? "none was seen" : waits, all.ready,
        100 * (1 - all.any_ready), v.lines[0], v.lines[1], v.lines[2]);
}

}  // namespace

void add_run(CLI::App& app, run_request& asked) {
    auto* const run = app.add_subcommand(
        "run",
        "run a program with kernel threads as it is, and say whether it would gain from fibers");
    run->add_option("program", asked.program, "the program, and its arguments")
        ->required()
        ->type_name("PROGRAM [ARGUMENTS..]");
    run->add_flag("--trace", asked.trace, "count its waits and switches")->required();
    run->add_option("-o,--output", asked.into, "write the report there, not to standard error")
        ->type_name("FILE");
    run->add_flag("--json", asked.json, "the report as JSON");
}

int own_words_of_run(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--") return std::min(argc, i + 2);
        if (word == "-o" || word == "--output")
            ++i;
        else if (!word.starts_with("-"))
            return i + 1;
    }
    return argc;
}

int run(const run_request& asked) {
    std::optional<output_file> into;
    if (!asked.into.empty()) into.emplace("--output", asked.into);
    program subject{asked.command};
    const counts all = watch(subject);
    const std::string& name = asked.command.front();
    if (all.is_refused) {
        fmt::print(stderr,
                   "ums: {}: its threads may not be looked at: it runs as another user, or this "
                   "system forbids it (see proc(5) and ptrace(2))\n",
                   inspect::printable(name));
        return subject.end_alike();
    }
    const verdict v = judge(all);
    const std::string report = asked.json ? to_json(name, all, v) : in_words(name, all, v);
    if (into)
        into->write(report);
    else
        fmt::print(stderr, "{}", report);
    return subject.end_alike();
}

}  // namespace tool
