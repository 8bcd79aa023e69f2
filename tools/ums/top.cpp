// SPDX-License-Identifier: MIT
#include "top.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "inspect/activity.hpp"
#include "inspect/live_process.hpp"
#include "inspect/symbols.hpp"
#include "inspect/wait_words.hpp"
#include "top_page.hpp"
#include "top_view.hpp"
#include "usage.hpp"

namespace tool {

using namespace inspect;

namespace {

using clock = std::chrono::steady_clock;

nlohmann::json to_json(const activity& a, const std::vector<std::size_t>& chosen, bool fibers,
                       start_names& names, descriptors& fds) {
    const snapshot& s = *a.now;
    nlohmann::json all{{"target", s.of().title()},
                       {"pid", s.of().pid()},
                       {"seconds", a.seconds},
                       {"samples", a.looks},
                       {"engine", s.engine},
                       {"states", by_state(s)},
                       {"waits", by_wait(s)},
                       {"hand_off_us", a.hand_off_us},
                       {"memory",
                        {{"stacks", s.memory.stacks},
                         {"warm", s.memory.warm},
                         {"cold", s.memory.cold},
                         {"mapped_bytes", s.memory.mapped_bytes}}}};
    if (!s.warning.empty()) all["warning"] = s.warning;
    all["processors"] = nlohmann::json::array();
    for (const processor_activity& p : a.processors)
        all["processors"].push_back({{"cluster", p.cluster},
                                     {"index", p.index},
                                     {"busy", p.busy},
                                     {"switches_per_s", p.switches},
                                     {"steals_per_s", p.steals},
                                     {"timers_per_s", p.timers_fired},
                                     {"queued", p.queued},
                                     {"timers", p.timers}});
    all["clusters"] = nlohmann::json::array();
    for (const cluster_activity& c : a.clusters)
        all["clusters"].push_back({{"name", c.name},
                                   {"processors", c.processors},
                                   {"busy", c.busy},
                                   {"carriers", c.carriers},
                                   {"queued", c.queued},
                                   {"switches_per_s", c.switches},
                                   {"spawned_per_s", c.spawned},
                                   {"ended_per_s", c.finished},
                                   {"hand_offs_per_s", c.hand_offs},
                                   {"stops_per_s", c.stops},
                                   {"preemptions_per_s", c.preemptions}});
    auto& list = all[fibers ? "fibers" : "starts"] = nlohmann::json::array();
    for (const std::size_t i : chosen) {
        if (!fibers) {
            assert(i < a.starts.size() && "a start was chosen that is not in the picture");
            const start_activity& g = a.starts[i];
            list.push_back({{"start", g.made_with.name},
                            {"fibers", g.fibers.size()},
                            {"busy", g.share},
                            {"stack_most", g.stack_most},
                            {"names", g.names},
                            {"states", g.states},
                            {"waits", g.waits}});
            continue;
        }
        const fiber_activity& one = a.fibers[i];
        const fiber_record& f = s.fibers[one.fiber];
        list.push_back({{"id", f.id},
                        {"name", f.name},
                        {"state", name_of(f.state)},
                        {"busy", one.share},
                        {"unmoved_s", one.unmoved_s},
                        {"stack_used", f.stack_used},
                        {"waits", wait_in_words(s, f, fds)},
                        {"start", names.of(one.start).name}});
    }
    return all;
}

void wait_and_look(activity_watch& watch, clock::time_point until) {
    // Out of step with what programs do every few milliseconds.
    for (unsigned turn = 0; clock::now() < until; ++turn) {
        const auto pause = std::chrono::milliseconds{10 + turn * 7 % 13};
        std::this_thread::sleep_until(std::min(until, clock::now() + pause));
        watch.look();
    }
}

int batch(const top_request& asked, const layout& how, activity_watch& watch, const top_view& view,
          start_names& names, descriptors& fds) {
    (void)watch.next();
    for (std::size_t n = 0; asked.count == 0 || n < asked.count; ++n) {
        wait_and_look(watch, clock::now() + std::chrono::duration_cast<clock::duration>(
                                                std::chrono::duration<double>{asked.interval_s}));
        const activity a = watch.next();
        std::vector<std::size_t> chosen = view.chosen(a);
        if (asked.rows != 0 && chosen.size() > asked.rows) chosen.resize(asked.rows);
        if (asked.json) {
            const bool fibers = view.shown() == top_view::list::fibers;
            fmt::print("{}\n", to_json(a, chosen, fibers, names, fds)
                                   .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
        } else {
            if (n != 0) fmt::print("\n");
            for (const top_line& l : view.head(a, how.library(), asked.width, 1000))
                fmt::print("{}\n", l.text);
            for (const std::string& l : view.table(a, chosen, asked.width)) fmt::print("{}\n", l);
        }
        if (std::fflush(stdout) != 0) return 0;  // No process reads any more: main() says so.
    }
    return 0;
}

}  // namespace

void add_top(CLI::App& app, top_request& asked) {
    auto* const top =
        app.add_subcommand("top", "watch what a process does: processors, rates, busy fibers");
    top->add_option("target", asked.target, "a process's number")->required()->type_name("PID");
    top->add_option("--interval", asked.interval_s,
                    "seconds between two pictures, 0.05 to 3600 (default 1)")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.05, 3600.0).description(""));
    top->add_option("-n,--count", asked.count, "end after so many pictures")->type_name("N");
    top->add_option("--by", asked.by, "the list: start functions (default) or fibers")
        ->type_name("start|fiber");
    top->add_option("--sort", asked.sort,
                    "of starts: share (default), count, stack or name; of fibers: share, unmoved, "
                    "stack, name or id")
        ->type_name("KEY");
    top->add_option("--match", asked.match,
                    "only those whose name, start function, state or wait matches")
        ->type_name("REGEX");
    top->add_flag("--batch", asked.batch, "print the pictures, one after another");
    top->add_flag("--json", asked.json, "print them as JSON, one a line");
    top->add_option("--rows", asked.rows, "of a batch: lines of the list (default 20; 0: all)")
        ->type_name("N");
    top->add_option("--width", asked.width, "of a batch: columns, 20 to 1000 (default 120)")
        ->type_name("N")
        ->check(CLI::Range(20, 1000).description(""));
}

int top(const top_request& asked) {
    const auto target = open_process(asked.target, false);
    if (!target->is_live()) throw usage_error{"top: a core file does nothing: use ums ps"};
    if (asked.by != "start" && asked.by != "fiber")
        throw usage_error{fmt::format("--by: '{}' is none of start, fiber", asked.by)};
    const layout how{*target};
    symbols names_from{*target};
    start_names names{names_from, *target};
    descriptors fds{target->pid()};
    activity_watch watch{*target, how, names};
    top_view view{names, fds};
    view.show(asked.by == "start" ? top_view::list::starts : top_view::list::fibers);
    if (!asked.sort.empty()) view.sort_by(asked.sort);
    if (!asked.match.empty()) view.match(asked.match);
    if (asked.batch || asked.json) return batch(asked, how, watch, view, names, fds);
    top_page{*target, how, names_from, watch, view, fds, asked.interval_s}.run(asked.count);
    return 0;
}

}  // namespace tool
