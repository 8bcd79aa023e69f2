// SPDX-License-Identifier: MIT
#include "bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <optional>
#include <system_error>

#include "../interrupt.hpp"
#include "../machine.hpp"
#include "../output_file.hpp"
#include "../usage.hpp"
#include "compare.hpp"
#include "detectors.hpp"
#include "options.hpp"
#include "peer.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "runner.hpp"
#include "workload.hpp"

namespace tool {

namespace {

// What `ums bench demo` measures, in this order.
constexpr std::array demo_parts{"workers", "blocking", "lone", "memory"};

const workload& named(std::string_view name) {
    const auto& all = all_workloads();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->name() == name; });
    assert(found != all.end() && "there is no such bench");
    return **found;
}

std::vector<const workload*> selected(const std::string& name) {
    std::vector<const workload*> chosen;
    std::vector<std::string_view> known;
    for (const auto& one : all_workloads()) {
        known.push_back(one->name());
        if (name == "all" || name == one->name()) chosen.push_back(one.get());
    }
    if (name == "demo")
        for (const auto* part : demo_parts) chosen.push_back(&named(part));
    if (chosen.empty())
        throw usage_error{fmt::format("unknown bench '{}'; expected one of: {}, demo, all, list",
                                      name, fmt::join(known, ", "))};
    return chosen;
}

bench_options checked(const bench_request& asked, const std::vector<const workload*>& workloads) {
    bench_options options;
    const auto cpus = available_cpus().size();
    if (asked.processors) {
        options.processors =
            number_list("--processors", *asked.processors, 1, std::min<std::size_t>(cpus, 1024),
                        cpus < 1024 ? " (the CPUs available here)" : "");
        options.has_processors = true;
    }
    if (asked.fibers) options.fibers = number_list("--fibers", *asked.fibers, 1, 10'000'000);
    if (asked.yields) options.yields = number_list("--yields", *asked.yields, 1, 1'000'000'000);
    if (asked.connections)
        options.connections = number_list("--connections", *asked.connections, 1, 1'000'000);
    if (asked.pipeline) options.pipeline = number_list("--pipeline", *asked.pipeline, 1, 1024);
    if (asked.rates) options.rates = number_list("--rates", *asked.rates, 1, 1'000'000);
    if (asked.ways) options.ways = word_list("--ways", *asked.ways);
    if (asked.client) {
        options.client = *asked.client;
        if (options.client != "own" && options.client != "wrk" && options.client != "ums")
            throw usage_error{
                fmt::format("--client: expected own, wrk or ums, got '{}'", options.client)};
    }
    if (asked.repetitions) {
        const auto given = number_list("--repetitions", *asked.repetitions, 1, 1000);
        if (given.size() != 1)
            throw usage_error{
                fmt::format("--repetitions: expected one number, got '{}'", *asked.repetitions)};
        options.repetitions = static_cast<unsigned>(given.front());
    }
    if (asked.detectors) options.detectors = detector_list(*asked.detectors);
    if (asked.runtimes) options.runtimes = word_list("--runtimes", *asked.runtimes);
    options.quick = asked.quick;
    options.cycles = asked.cycles;
    options.demo = *asked.name == "demo";

    if (workloads.size() > 1) {
        const auto needs_one = [&](bool is_given, const char* option) {
            if (is_given)
                throw usage_error{
                    fmt::format("{}: expected one bench, not {}, beside it", option, *asked.name)};
        };
        needs_one(!options.fibers.empty(), "--fibers");
        needs_one(!options.connections.empty(), "--connections");
        needs_one(!options.pipeline.empty(), "--pipeline");
        needs_one(!options.client.empty(), "--client");
        needs_one(!options.ways.empty(), "--ways");
        needs_one(!options.rates.empty(), "--rates");
        needs_one(!options.runtimes.empty(), "--runtimes");
        needs_one(!options.detectors.empty(), "--detectors");
    }
    for (const auto* one : workloads) one->check(options);
    return options;
}

// What `ums bench list` says: the groups, and about how long a bench takes with all of its peers,
// on two CPUs. Yield, blocking, lone and completion were timed; the others are estimates by their
// number of cells.
struct listed {
    std::string_view name, takes;
};
struct list_group {
    std::string_view title;
    std::vector<listed> benches;
};
const std::vector<list_group>& list_groups() {
    static const std::vector<list_group> groups{
        {"Fibers",
         {{"yield", "2 min"},
          {"spawn", "30 s"},
          {"pingpong", "20 s"},
          {"skynet", "1 min"},
          {"forkjoin", "5 min"},
          {"memory", "3 min"},
          {"sleepers", "3 min"},
          {"scaling", "3 min"}}},
        {"Synchronisation",
         {{"mutex", "2 min"},
          {"channel", "1 min"},
          {"condvar", "30 s"},
          {"semaphore", "20 s"},
          {"select", "30 s"}}},
        {"Blocking and preemption", {{"blocking", "3 min"}, {"preemption", "1 min"}}},
        {"Servers, and waits for I/O",
         {{"http", "5 min"},
          {"memcached", "2 min"},
          {"echo", "3 min"},
          {"connections", "2 min"},
          {"lone", "7 min"}}},
        {"Threads of the UMS API", {{"workers", "2 min"}, {"completion", "8 min"}}},
        {"Scheduling policies",
         {{"migrate", "2 min"}, {"policies", "5 min"}, {"jobs", "5 min"}, {"shares", "1 min"}}},
    };
    return groups;
}

// "ums has no peer for it" is only an error where the peer was named or is ums itself; see
// workload::chosen().
result measure(const workload& what, const bench_options& options, progress& shown) {
    result got{std::string{what.name()}, options, {}, {}};
    got.plan = what.plan(options, got.notes);
    split_by_detector(got);
    std::erase_if(got.plan, [](const setting& group) { return group.empty(); });
    runner cells{got.bench, got.plan, shown, what.limit_s(options)};
    cells.run(options.repetitions.value_or(what.repetitions(options)));
    return got;
}

bool has_failed(const result& got) {
    for (const auto& group : got.plan)
        for (const auto& one : group)
            if (one.runtime == "ums" && !one.error.empty()) return true;
    return false;
}

std::string tables_of(const section& part) {
    std::string text;
    for (const auto& one : part.shown.tables) text += text_of(one) + "\n";
    return text;
}

// The claims, and what went wrong. The page and the rows in JSON have all of it.
std::string summary_of(const section& part, const result& got) {
    std::string text;
    for (const auto& one : part.shown.claims) text += text_of(one) + "\n";
    for (const auto& one : remarks(got))
        if (one.starts_with("FAILED") || std::count(got.notes.begin(), got.notes.end(), one) != 0)
            text += one + "\n\n";
    return text;
}

void print(std::FILE* to, const std::string& text) {
    if (std::fputs(text.c_str(), to) < 0 || std::fflush(to) != 0)
        throw std::system_error{errno, std::generic_category(), "cannot write the result"};
}

// Opens it now, so that a misspelt folder does not cost an hour of measuring.
void open_output(std::optional<output_file>& file, const char* option,
                 const std::optional<std::string>& path) {
    if (!path) return;
    if (path->empty() || path->starts_with("--"))
        throw usage_error{fmt::format("{}: expected a file, got '{}'", option, *path)};
    file.emplace(option, *path);
}

int list(const bench_request& asked) {
    if (asked.json || asked.html || asked.processors || asked.fibers || asked.yields ||
        asked.connections || asked.pipeline || asked.client || asked.ways || asked.rates ||
        asked.repetitions || asked.runtimes || asked.detectors || asked.quick || asked.cycles)
        throw usage_error{"list: it takes no options"};
    std::string text = fmt::format("demo: {}; 4 min\n", fmt::join(demo_parts, ", "));
    for (const auto& [title, benches] : list_groups()) {
        text += fmt::format("\n{}\n", title);
        for (const auto& [name, takes] : benches)
            text += fmt::format("  {:<12} {:>5}  {}\n", name, takes, named(name).about());
    }
    print(stdout, text);
    return 0;
}

}  // namespace

void add_bench(CLI::App& command, bench_request& asked) {
    command.add_option("name", asked.name,
                       "a bench, 'demo', 'all', or 'list' to see what there is");
    command
        .add_option("--json", asked.json,
                    "write the rows as JSON; - for stdout, the tables then go to stderr")
        ->type_name("FILE|-");
    command
        .add_option("--html", asked.html,
                    "write a page with tables and charts that needs no network")
        ->type_name("FILE");
    command.add_flag("--quick", asked.quick,
                     "seconds instead of minutes: shows that all works, not how fast");
    command.add_option("--processors", asked.processors, "CPUs for every runtime (default 1)")
        ->type_name("N[,N..]");
    command.add_option("--fibers", asked.fibers, "how many fibers or threads")
        ->type_name("N[,N..]");
    command.add_option("--yields", asked.yields, "yield: how often each yields")
        ->type_name("N[,N..]");
    command
        .add_option("--connections", asked.connections,
                    "http, echo, lone, ...: how many connections")
        ->type_name("N[,N..]");
    command
        .add_option("--pipeline", asked.pipeline,
                    "http, echo, memcached: requests that are sent before a response is waited for")
        ->type_name("N[,N..]");
    command
        .add_option("--client", asked.client, "http and echo: what loads the servers (default own)")
        ->type_name("own|wrk|ums");
    command
        .add_option("--ways", asked.ways, "lone, forkjoin: only these, such as pipe,open or fib:34")
        ->type_name("NAME[,NAME..]");
    command.add_option("--rates", asked.rates, "lone: requests a second, of open and flood")
        ->type_name("N[,N..]");
    command.add_option("--repetitions", asked.repetitions, "how often each cell is measured")
        ->type_name("N");
    command
        .add_option("--detectors", asked.detectors,
                    "yield, spawn, pingpong: with each of these detectors of blocking, in turn")
        ->type_name("off|monitor[,..]");
    command.add_option("--runtimes", asked.runtimes, "only these, such as ums,boost.fiber")
        ->type_name("NAME[,NAME..]");
    command.add_flag("--cycles", asked.cycles,
                     "yield: cycles of each single switch, by the time-stamp counter");
}

int bench(const bench_request& asked) {
    if (!asked.name)
        throw usage_error{"bench: expected the name of one; 'ums bench list' shows them"};
    if (*asked.name == "list") return list(asked);
    const auto workloads = selected(*asked.name);
    const auto options = checked(asked, workloads);
    const bool json_to_stdout = asked.json == "-";
    std::optional<output_file> json_file, html_file;
    if (!json_to_stdout) open_output(json_file, "--json", asked.json);
    open_output(html_file, "--html", asked.html);

    catch_interrupts();
    const auto on = this_machine();
    std::FILE* const tables_to = json_to_stdout ? stderr : stdout;
    progress shown;
    std::vector<section> sections;
    auto all = json::array();
    bool failed = false;
    for (const auto* one : workloads) {
        const auto got = measure(*one, options, shown);
        section part{std::string{one->name()}, std::string{one->about()}, one->show(got)};
        auto notes = remarks(got);
        if (!part.shown.tables.empty()) {
            auto& last = part.shown.tables.back().notes;
            last.insert(last.end(), notes.begin(), notes.end());
            const auto compared = detector_ratios(got, "ns_per_op");
            last.insert(last.end(), compared.begin(), compared.end());
        }
        print(tables_to, options.demo ? summary_of(part, got) : tables_of(part));
        sections.push_back(std::move(part));
        all.push_back(to_json(got, on));
        failed |= has_failed(got);
    }

    const json document = workloads.size() > 1 ? json{{"benches", all}} : all.front();
    const auto text = document.dump(2) + "\n";
    if (json_to_stdout) print(stdout, text);
    if (json_file) json_file->write(text);
    if (html_file) html_file->write(to_html(sections, on, asked.command_line));
    return failed ? 1 : 0;
}

}  // namespace tool
