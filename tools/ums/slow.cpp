// SPDX-License-Identifier: MIT
#include "slow.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "inspect/layout.hpp"
#include "inspect/live_process.hpp"
#include "inspect/snapshot.hpp"
#include "inspect/stacks.hpp"
#include "inspect/symbols.hpp"
#include "inspect/unwinder.hpp"
#include "inspect/wait_words.hpp"
#include "inspect/words.hpp"
#include "usage.hpp"

namespace tool {

using namespace inspect;

namespace {

using clock = std::chrono::steady_clock;

clock::duration to_clock(double seconds) {
    return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{seconds});
}

// What a processor does, from one switch to the next.
struct stretch {
    address holder = 0;  // The carrier.
    address fiber = 0;
    std::uint64_t switches = 0;
    friend bool operator==(const stretch&, const stretch&) = default;
};

struct watched_processor {
    std::string cluster;
    std::uint32_t index = 0;
    stretch now;
    int tid = 0;
    // CPU time of the thread when the stretch was seen for the second time; -1: it was not yet.
    std::int64_t cpu_before = -1;
    std::string told;  // The fiber, in words; empty: not told yet.
};

class slow_watch {
public:
    slow_watch(const live_process& of, const layout& how, std::int64_t limit_ns)
        : of_{of},
          how_{how},
          limit_ns_{limit_ns},
          names_{of},
          starts_{names_, of},
          by_{of, names_},
          begin_{clock::now()} {}

    // Looks at all processors, and prints. Throws std::runtime_error when the process has ended.
    void look() {
        if (clock::now() >= next_list_) list_processors();
        for (auto& [at, p] : processors_) look_at(at, p);
    }

private:
    // Processors come and go. Takes at most a tenth of the time.
    void list_processors() {
        const auto began = clock::now();
        const snapshot s{of_, how_};
        std::map<address, watched_processor> all;
        for (const processor_record& p : s.processors) {
            if (p.is_retired) continue;
            const auto before = processors_.find(p.at);
            all[p.at] = before != processors_.end()
                            ? before->second
                            : watched_processor{s.clusters[p.cluster].name, p.index, {}, 0, -1, {}};
        }
        processors_ = std::move(all);
        const auto now = clock::now();
        next_list_ = now + std::max<clock::duration>(std::chrono::seconds{1}, 9 * (now - began));
    }

    // Not of one moment: what changes meanwhile differs from the look before.
    [[nodiscard]] stretch stretch_of(address processor) const {
        stretch seen;
        std::uint64_t past = 0;
        std::uint32_t length = 0, left = 0;
        piece words[] = {
            {processor + how_.value("processor.holder"), &seen.holder, 8, false},
            {processor + how_.value("processor.past_switches"), &past, 8, false},
            {processor + how_.value("processor.slice_length"), &length, 4, false},
            {processor + how_.value("processor.slice_left"), &left, 4, false},
        };
        of_.read(words);
        seen.switches = past + length - left;
        if (seen.holder != 0)
            seen.fiber = of_.get<address>(seen.holder + how_.value("carrier.running")).value_or(0);
        return seen;
    }

    void look_at(address at, watched_processor& p) {
        const stretch now = stretch_of(at);
        if (now != p.now || now.fiber == 0) {
            if (!p.told.empty()) end(p);
            p.now = now;
            p.cpu_before = -1;
            return;
        }
        if (p.cpu_before < 0) {
            const int own = of_.get<int>(now.holder + how_.value("carrier.tid")).value_or(0);
            p.tid = of_.tid_here(own);
            p.cpu_before = of_.on_cpu_ns(p.tid);
            return;
        }
        if (p.told.empty() && of_.on_cpu_ns(p.tid) - p.cpu_before >= limit_ns_) tell(at, p);
    }

    void tell(address at, watched_processor& p) {
        const auto is_still = [&] { return stretch_of(at) == p.now; };
        const call_stack stack =
            stack_of_running(of_, of_.thread(p.tid), 0, p.now.fiber, is_still, by_);
        // A thread that is in a system call is not stopped: so it may have switched in between.
        if (stack.frames.empty() || !is_still()) return;
        const fiber_record f = fiber_at(p.now.fiber);
        p.told = fiber_in_words(f);
        say(fmt::format("{} has run for {} on processor {} of {}: {}", p.told,
                        duration_in_words(of_.on_cpu_ns(p.tid) - p.cpu_before), p.index, p.cluster,
                        starts_.of(f).shown));
        for (const std::string& line : lines_of(stack, names_)) fmt::print("    {}\n", line);
        std::fflush(stdout);
    }

    void end(watched_processor& p) {
        say(fmt::format("{} has switched, after about {}", p.told,
                        duration_in_words(of_.on_cpu_ns(p.tid) - p.cpu_before)));
        std::fflush(stdout);
        p.told.clear();
    }

    void say(const std::string& what) const {
        fmt::print("{:8.3f} s  {}\n", std::chrono::duration<double>{clock::now() - begin_}.count(),
                   what);
    }

    // What names a fiber that runs.
    [[nodiscard]] fiber_record fiber_at(address at) const {
        fiber_record f;
        f.at = at;
        address name = 0;
        piece words[] = {{at + how_.value("fiber.id"), &f.id, 8, false},
                         {at + how_.value("fiber.run"), &f.run, 8, false},
                         {at + how_.value("fiber.callable"), &f.callable, 8, false},
                         {at + how_.value("fiber.name"), &name, 8, false}};
        of_.read(words);
        // A name lies below its fiber's descriptor; what lies elsewhere is none.
        char text[256];
        const std::size_t bytes = std::min<std::uint64_t>(sizeof text, at - name);
        if (name < at && at - name <= how_.value("fiber.top_bytes") && of_.read(name, text, bytes))
            f.name.assign(text, strnlen(text, bytes));
        return f;
    }

    const live_process& of_;
    const layout& how_;
    const std::int64_t limit_ns_;
    symbols names_;
    start_names starts_;
    unwinder by_;
    const clock::time_point begin_;
    clock::time_point next_list_{};
    std::map<address, watched_processor> processors_;
};

}  // namespace

void add_slow(CLI::App& app, slow_request& asked) {
    auto* const slow = app.add_subcommand(
        "slow", "tell of each fiber that runs long before it switches, with its stack");
    slow->add_option("target", asked.target, "a process's number")->required()->type_name("PID");
    slow->add_option("--over", asked.over_ms,
                     "the limit, in milliseconds of CPU time, 1 to 3600000 (default 10)")
        ->type_name("MS")
        ->check(CLI::Range(1.0, 3.6e6).description(""));
    slow->add_option("--for", asked.for_s,
                     "look for so many seconds; else until Ctrl-C or the process's end")
        ->check(CLI::PositiveNumber)
        ->type_name("SECONDS");
}

int slow(const slow_request& asked) {
    const auto target = open_process(asked.target, false);
    const auto* live = dynamic_cast<const live_process*>(target.get());
    if (live == nullptr) throw usage_error{"slow: a core file does nothing: use ums stack"};
    const layout how{*target};
    slow_watch watch{*live, how, static_cast<std::int64_t>(asked.over_ms * 1e6)};
    // Four looks within the limit, so that a run is told of before it has lasted twice as long.
    const auto pause = std::clamp(to_clock(asked.over_ms / 4e3), to_clock(1e-3), to_clock(20e-3));
    const auto end = clock::now() + to_clock(asked.for_s);
    fmt::print("{}: fibers that run for more than {:g} ms before they switch\n", target->title(),
               asked.over_ms);
    std::fflush(stdout);
    do {
        watch.look();
        std::this_thread::sleep_for(pause);
    } while (asked.for_s == 0 || clock::now() < end);
    return 0;
}

}  // namespace tool
