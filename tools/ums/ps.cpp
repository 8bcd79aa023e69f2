// SPDX-License-Identifier: MIT
#include "ps.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "inspect/selection.hpp"
#include "inspect/snapshot.hpp"
#include "inspect/symbols.hpp"
#include "inspect/wait_words.hpp"
#include "inspect/words.hpp"
#include "trace/fiber_times.hpp"
#include "trace/live_rings.hpp"
#include "usage.hpp"

namespace tool {

using namespace inspect;

namespace {

// For how long the rings tell all, in ns; unset: nothing is recorded.
using reach = std::optional<std::int64_t>;

void print_header(const snapshot& s, const layout& how, reach recorded) {
    fmt::print("{}: libums {}, {} fibers\n", s.of().title(), how.library(), s.fibers.size());
    if (!s.fibers.empty()) fmt::print("states: {}\n", in_words(by_state(s)));
    if (const name_counts c = by_wait(s); !c.empty()) fmt::print("waits: {}\n", in_words(c));
    for (std::uint32_t i = 0; i < s.clusters.size(); ++i) {
        const cluster_record& c = s.clusters[i];
        fmt::print(
            "cluster {}: {} processors, {} carriers of {} at most, {} hand-offs, {} stops, "
            "{} preemptions{}{}\n",
            printable(c.name), c.processors, c.carriers, c.carriers_most, c.hand_offs, c.stops,
            c.preemptions, c.has_policy ? ", a policy of its own" : "",
            c.queued != 0 ? fmt::format(", {} in its inbox", c.queued) : "");
        for (const processor_record& p : s.processors) {
            if (p.cluster != i || p.is_retired) continue;
            fmt::print("  processor {}: {}, {} queued, {} timers\n", p.index,
                       p.is_idle ? "idle" : "busy", p.queued, p.timers);
        }
    }
    fmt::print(
        "memory: {} stacks ({} free with memory, {} without) in {} slabs, {} mapped; engine: {}\n",
        s.memory.stacks, s.memory.warm, s.memory.cold, s.memory.slabs,
        bytes_in_words(s.memory.mapped_bytes), s.engine.empty() ? "none yet" : s.engine);
    if (recorded)
        fmt::print("recorded: the last {}, for SINCE and CPU\n", duration_in_words(*recorded));
    if (!s.warning.empty()) fmt::print("warning: {}\n", s.warning);
}

std::string time_in_words(std::int64_t ns) { return ns < 0 ? "-" : duration_in_words(ns); }

void print_workers(const snapshot& s) {
    if (s.workers.empty()) return;
    fmt::print("\n{:>18} {:<10} {:>7} {:>10} {:>18}  {}\n", "UMS CONTEXT", "STATE", "TID",
               "SWITCHES", "EXECUTED BY", "WAITS FOR");
    for (const worker_record& w : s.workers)
        fmt::print("{:>#18x} {:<10} {:>7} {:>10} {:>18}  {}\n", w.handle, state_of(w), w.tid,
                   w.switches, w.is_scheduler ? "-" : fmt::format("{:#x}", w.partner), wait_of(w));
}

void print_lines(const snapshot& s, reach recorded, const std::vector<std::uint32_t>& chosen,
                 start_names& names, descriptors& fds) {
    const auto times = [&](const std::string& since, const std::string& cpu) {
        return recorded ? fmt::format(" {:>7} {:>7}", since, cpu) : std::string{};
    };
    fmt::print("\n{:>8} {:<9} {:>4} {:>6}{}  {:<10} {:<14} {:<40} {}\n", "ID", "STATE", "PROC",
               "STACK", times("SINCE", "CPU"), "CLUSTER", "NAME", "WAITS FOR", "START");
    bool any_moved = false;
    fmt::memory_buffer line;
    for (const std::uint32_t i : chosen) {
        assert(i < s.fibers.size() && "a fiber was chosen that is not in the picture");
        const fiber_record& f = s.fibers[i];
        any_moved |= f.has_moved;
        std::string state = name_of(f.state);
        if (f.has_moved) state += '~';
        line.clear();
        fmt::format_to(fmt::appender{line}, "{:>8} {:<9} {:>4} {:>6}{}  {:<10} {:<14} {:<40} {}",
                       f.id, state, processor_of(s, f), bytes_in_words(f.stack_used),
                       times(time_in_words(f.since_ns), time_in_words(f.cpu_ns)),
                       printable(cluster_of(s, f)), printable(f.name), wait_in_words(s, f, fds),
                       shortened(names.of(f).shown));
        std::size_t length = line.size();
        while (length != 0 && line[length - 1] == ' ') --length;
        line.resize(length);
        line.push_back('\n');
        std::fwrite(line.data(), 1, line.size(), stdout);
    }
    if (any_moved)
        fmt::print("~: it ran while it was read; what is said of it may not fit together\n");
}

nlohmann::json to_json(const snapshot& s, reach recorded, const fiber_record& f, start_names& names,
                       descriptors& fds) {
    const start& made_with = names.of(f);
    nlohmann::json j{{"id", f.id},
                     {"name", f.name},
                     {"state", name_of(f.state)},
                     {"cluster", cluster_of(s, f)},
                     {"start", made_with.name},
                     {"spawned_by", f.spawner},
                     {"moved", f.has_moved}};
    if (!made_with.place.empty()) j["start_at"] = made_with.place;
    if (f.processor != nobody) j["processor"] = s.processors[f.processor].index;
    if (f.stack_used != 0) j["stack_used"] = f.stack_used;
    j["stack_bytes"] = f.stack_end - f.stack_begin;
    if (recorded) {
        const auto known = [](std::int64_t ns) {
            return ns < 0 ? nlohmann::json() : nlohmann::json(ns);
        };
        j["since_ns"] = known(f.since_ns);
        j["cpu_ns"] = known(f.cpu_ns);
    }
    if (f.carrier != nobody) {
        j["tid"] = s.carriers[f.carrier].tid;
        j["handed_off"] = f.is_handed_off;
    }
    if (f.waits == wait::none) return j;
    nlohmann::json w{{"kind", name_of(f.waits)}, {"text", wait_in_words(s, f, fds)}};
    const bool is_number = f.waits == wait::readable || f.waits == wait::writable ||
                           f.waits == wait::select || f.waits == wait::system_call;
    if (is_number)
        w["number"] = f.waits_in;
    else if (f.waits_in != 0)
        w["object"] = fmt::format("0x{:x}", f.waits_in);
    if (f.waits_by != nobody) w["by"] = s.fibers[f.waits_by].id;
    if (f.deadline != 0 && s.taken_at != 0) w["left_ns"] = f.deadline - s.taken_at;
    j["waits"] = std::move(w);
    return j;
}

void print_json(const snapshot& s, const layout& how, reach recorded,
                const std::vector<std::uint32_t>& chosen, bool with_fibers, start_names& names,
                descriptors& fds) {
    nlohmann::json all{{"target", s.of().title()}, {"pid", s.of().pid()},
                       {"libums", how.library()},  {"engine", s.engine},
                       {"states", by_state(s)},    {"waits", by_wait(s)}};
    if (!s.warning.empty()) all["warning"] = s.warning;
    if (recorded) all["recorded_ns"] = *recorded;
    all["memory"] = {{"stacks", s.memory.stacks},
                     {"warm", s.memory.warm},
                     {"cold", s.memory.cold},
                     {"slabs", s.memory.slabs},
                     {"mapped_bytes", s.memory.mapped_bytes}};
    for (std::uint32_t i = 0; i < s.clusters.size(); ++i) {
        const cluster_record& c = s.clusters[i];
        nlohmann::json processors = nlohmann::json::array();
        for (const processor_record& p : s.processors)
            if (p.cluster == i && !p.is_retired)
                processors.push_back({{"index", p.index},
                                      {"idle", p.is_idle},
                                      {"queued", p.queued},
                                      {"timers", p.timers},
                                      {"switches", p.switches},
                                      {"steals", p.steals},
                                      {"spawned", p.spawned},
                                      {"finished", p.finished},
                                      {"timers_fired", p.timers_fired}});
        all["clusters"].push_back({{"name", c.name},
                                   {"processors", processors},
                                   {"policy", c.has_policy},
                                   {"carriers", c.carriers},
                                   {"carriers_most", c.carriers_most},
                                   {"queued", c.queued},
                                   {"hand_offs", c.hand_offs},
                                   {"stops", c.stops},
                                   {"preemptions", c.preemptions}});
    }
    for (const worker_record& w : s.workers)
        all["workers"].push_back({{"context", w.handle},
                                  {"state", state_of(w)},
                                  {"tid", w.tid},
                                  {"switches", w.switches},
                                  {"partner", w.partner},
                                  {"waits", wait_of(w)}});
    if (with_fibers) {
        all["fibers"] = nlohmann::json::array();
        for (const std::uint32_t i : chosen)
            all["fibers"].push_back(to_json(s, recorded, s.fibers[i], names, fds));
    }
    // Names are arbitrary bytes of the program's. ASCII alone cannot drive a terminal.
    fmt::print("{}\n", all.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void add_ps(CLI::App& app, ps_request& asked) {
    auto* const ps = app.add_subcommand("ps", "list the fibers of a process or a core file");
    ps->add_option("target", asked.target, "a process's number, or a core file")
        ->required()
        ->type_name("PID|CORE");
    ps->add_option("--state", asked.states,
                   "only these: running, blocked, stopped, ready, parked, ended")
        ->type_name("STATE[,STATE..]");
    ps->add_option("--waits", asked.waits,
                   "only those that wait for this: mutex, semaphore, receive, read, sleep, ... (as "
                   "in the counts)")
        ->type_name("KIND[,KIND..]");
    ps->add_option("--cluster", asked.cluster, "only this cluster's")->type_name("NAME");
    ps->add_option("--match", asked.match, "only those whose name or start function matches")
        ->type_name("REGEX");
    ps->add_option("--sort", asked.sort,
                   "id (default), name, state, stack, deadline or start; while the process records "
                   "(ums trace --on PID, or UMS_TRACE=on), which adds the columns SINCE and CPU, "
                   "also since or cpu")
        ->type_name("KEY");
    ps->add_option("--top", asked.top, "at most so many lines")->type_name("N");
    ps->add_flag("--counts", asked.counts, "the header and the counts alone");
    ps->add_flag("--json", asked.json, "as JSON");
    ps->add_flag("--stop", asked.stop,
                 "stop the process meanwhile, for an exact picture; some of its system calls may "
                 "end with EINTR");
}

int ps(const ps_request& asked) {
    const auto target = open_process(asked.target, asked.stop);
    const layout how{*target};
    snapshot s{*target, how};
    std::optional<tracing::recording> trace;
    if (!asked.counts) trace = tracing::recorded_by(*target, how);
    let_go(*target);
    reach recorded;
    if (trace) {
        const bool is_all = tracing::have_all_busy_begun(s, *trace);
        recorded = tracing::set_times(s.fibers, s.taken_at, is_all, std::move(*trace));
    }
    if (!trace && !asked.counts && (asked.sort == "since" || asked.sort == "cpu"))
        throw std::runtime_error{fmt::format(
            "--sort: '{}' needs a live process that records (ums trace --on PID, or UMS_TRACE=on)",
            asked.sort)};
    symbols names_from{*target};
    start_names names{names_from, *target};
    descriptors fds = target->is_live() ? descriptors{target->pid()} : descriptors{};
    const selection which{asked.states, asked.waits, asked.cluster, asked.match};
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t i = 0; i < s.fibers.size(); ++i)
        if (which.has(s.fibers[i], cluster_of(s, s.fibers[i]),
                      [&] { return names.of(s.fibers[i]).words(); }))
            chosen.push_back(i);
    sort_fibers(asked.sort, s, chosen, [&](const fiber_record& f) { return names.of(f).shown; });
    if (asked.top != 0 && chosen.size() > asked.top) chosen.resize(asked.top);
    if (asked.json) {
        print_json(s, how, recorded, chosen, !asked.counts, names, fds);
    } else {
        print_header(s, how, recorded);
        if (!asked.counts) {
            if (!s.fibers.empty()) print_lines(s, recorded, chosen, names, fds);
            print_workers(s);
        }
    }
    return 0;
}

}  // namespace tool
