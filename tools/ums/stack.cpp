// SPDX-License-Identifier: MIT
#include "stack.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "inspect/lock_graph.hpp"
#include "inspect/selection.hpp"
#include "inspect/snapshot.hpp"
#include "inspect/stacks.hpp"
#include "inspect/symbols.hpp"
#include "inspect/unwinder.hpp"
#include "inspect/wait_words.hpp"
#include "inspect/words.hpp"

namespace tool {

using namespace inspect;

namespace {

std::vector<std::uint32_t> chosen_of(const snapshot& s, const stack_request& asked,
                                     symbols& names) {
    const selection which{asked.states, asked.waits, asked.cluster, asked.match};
    start_names starts{names, s.of()};
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t i = 0; i < s.fibers.size(); ++i) {
        const fiber_record& f = s.fibers[i];
        const bool is_named =
            asked.fibers.empty() ||
            std::find(asked.fibers.begin(), asked.fibers.end(), f.id) != asked.fibers.end();
        std::string cluster;
        for (const cluster_record& c : s.clusters)
            if (c.at == f.cluster) cluster = c.name;
        if (is_named && which.has(f, cluster, [&] { return starts.of(f).words(); }))
            chosen.push_back(i);
    }
    for (const std::uint64_t id : asked.fibers)
        if (std::none_of(s.fibers.begin(), s.fibers.end(),
                         [id](const fiber_record& f) { return f.id == id; }))
            throw std::runtime_error{fmt::format("{}: there is no fiber {}", s.of().title(), id)};
    sort_fibers("id", s, chosen, [](const fiber_record&) { return std::string{}; });
    return chosen;
}

void print(const snapshot& s, const stack_group& g, bool whole, symbols& names, descriptors& fds) {
    fmt::print("{}\n", headline(s, g, fds));
    for (const std::string& line : lines_of(g.stack, names, whole)) fmt::print("    {}\n", line);
    fmt::print("\n");
}

// The workers of the UMS API, equal stacks together. A running worker is on its scheduler's kernel
// thread.
using worker_groups = std::map<std::pair<call_stack, std::string>, std::vector<std::uint64_t>>;

worker_groups groups_of_workers(const snapshot& s, unwinder& by) {
    worker_groups groups;
    for (const worker_record& w : s.workers) {
        registers r;
        if (w.ip != 0) {
            r.set(registers::sp, w.sp);
            r.set(registers::ip, w.ip);
            r.set(registers::bp, w.bp);
        } else if (w.thread) {
            r = w.thread->at;
        }
        const std::string why = wait_of(w);
        groups[{by.unwind(r, {}), state_of(w) + (why.empty() ? "" : ", " + why)}].push_back(
            w.handle);
    }
    return groups;
}

void print(const worker_groups& groups, bool whole, symbols& names) {
    for (const auto& [key, workers] : groups) {
        fmt::print("{} worker{} of the UMS API: {}: {:#x}{}\n", workers.size(),
                   workers.size() == 1 ? "" : "s", key.second, workers.front(),
                   workers.size() == 1 ? "" : " ..");
        for (const std::string& line : lines_of(key.first, names, whole))
            fmt::print("    {}\n", line);
        fmt::print("\n");
    }
}

nlohmann::json to_json(const snapshot& s, const stack_group& g, symbols& names) {
    nlohmann::json j{{"state", name_of(g.state)}, {"waits", name_of(g.waits)}};
    for (const std::uint32_t i : g.fibers) j["fibers"].push_back(s.fibers[i].id);
    j["frames"] = nlohmann::json::array();
    for (const address pc : g.stack.frames)
        for (const source_frame& f : names.frames(pc))
            j["frames"].push_back({{"address", fmt::format("0x{:x}", pc)},
                                   {"function", f.function},
                                   {"file", f.file},
                                   {"line", f.line},
                                   {"inlined", f.is_inlined}});
    j["complete"] = !g.stack.is_cut_off;
    return j;
}

}  // namespace

void add_stack(CLI::App& app, stack_request& asked) {
    auto* const stack =
        app.add_subcommand("stack", "show the calls that fibers are in, equal ones together");
    stack->add_option("target", asked.target, "a process's number, or a core file")
        ->required()
        ->type_name("PID|CORE");
    stack->add_option("fibers", asked.fibers, "only these, by their ids")->type_name("FIBER");
    stack->add_option("--state", asked.states, "as for ums ps")->type_name("STATE[,STATE..]");
    stack->add_option("--waits", asked.waits, "as for ums ps")->type_name("KIND[,KIND..]");
    stack->add_option("--cluster", asked.cluster, "as for ums ps")->type_name("NAME");
    stack->add_option("--match", asked.match, "as for ums ps")->type_name("REGEX");
    stack->add_option("--top", asked.top, "at most so many groups, the largest")->type_name("N");
    stack->add_flag("--each", asked.each, "each fiber by itself, in the order of their ids");
    stack->add_flag("--whole", asked.whole,
                    "with the frames of libums before the program's first one and after its last; "
                    "JSON has them always");
    auto* const locks = stack->add_flag(
        "--locks", asked.locks, "who waits for whose mutexes, and deadlocks, instead of stacks");
    // The graph is of all fibers.
    for (const char* const choice :
         {"fibers", "--state", "--waits", "--cluster", "--match", "--top", "--each", "--whole"})
        locks->excludes(stack->get_option(choice));
    stack->add_flag("--json", asked.json, "as JSON");
    stack->add_flag("--stop", asked.stop,
                    "stop the process meanwhile, for an exact picture; some of its system calls "
                    "may end with EINTR");
}

int stack(const stack_request& asked) {
    const auto target = open_process(asked.target, asked.stop);
    const layout how{*target};
    const snapshot s{*target, how};
    if (!s.warning.empty()) fmt::print(stderr, "ums: {}\n", s.warning);
    if (asked.locks) {
        let_go(*target);
        const lock_graph graph{s};
        fmt::print("{}", asked.json ? graph.json() + "\n" : graph.in_words());
        return 0;
    }
    symbols names{*target};
    descriptors fds = target->is_live() ? descriptors{target->pid()} : descriptors{};
    const std::vector<std::uint32_t> chosen = chosen_of(s, asked, names);
    unwinder by{*target, names};
    std::vector<call_stack> stacks = stacks_of(s, chosen, by);
    const bool is_all = chosen.size() == s.fibers.size();
    worker_groups workers;
    if (is_all && !asked.json) workers = groups_of_workers(s, by);
    let_go(*target);
    std::vector<stack_group> groups = grouped(s, chosen, std::move(stacks), asked.each);
    if (asked.top != 0 && groups.size() > asked.top) groups.resize(asked.top);
    if (asked.json) {
        nlohmann::json all = nlohmann::json::array();
        for (const stack_group& g : groups) all.push_back(to_json(s, g, names));
        fmt::print("{}\n", all.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
    } else {
        for (const stack_group& g : groups) print(s, g, asked.whole, names, fds);
        print(workers, asked.whole, names);
    }
    return 0;
}

}  // namespace tool
