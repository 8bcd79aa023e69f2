// SPDX-License-Identifier: MIT
//
// Why there is no false alarm. The caller is a carrier whose cluster has had nothing to run for a
// while. It reads, in this order:
//
// 1. no kernel thread is in this process that is not at rest (os/thread/at_rest.hpp);
// 2. no cluster has a processor that is not idle, a deadline, a fiber that is blocked in the
//    kernel, or a pause;
// 3. every fiber waits for what only another fiber or thread can do;
// 4. steps 1 and 2 once more.
//
// After step 4 something would have to come from a thread that is at rest or from an idle
// processor, and these wait for each other. A thread that began after step 1 was begun by one that
// ran, and what ran between the two reads of step 2 has left a processor that is not idle, or a
// fiber in another wait of the same kinds. What another process does reaches a fiber through the
// kernel only: through a descriptor (step 3), a blocked call (step 2), or a signal, whose handler
// must not call the library.

#include "runtime/standstill.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "arch/backtrace.hpp"
#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "mem/slab.hpp"
#include "os/source_lines.hpp"
#include "os/thread/at_rest.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/record/trace.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/search.hpp"
#include "ums/deadlock.hpp"
#include "ums/metrics.hpp"

namespace ums::rt {

namespace {

constexpr std::size_t most_told = 100;   // Fibers.
constexpr std::size_t most_stacks = 20;  // Of these, with their stacks.

deadlock_check what_to_do = deadlock_check::off;
// One carrier at a time looks. Not a lock: looking takes others, in no order with this one.
base::atomic<bool> is_looking;
bool is_told = false;

// Whether only another fiber or thread can end it.
bool needs_another(const fiber_info& f) noexcept {
    if (f.state == fiber_state::ended) return true;
    if (f.state != fiber_state::waiting) return false;
    static constexpr std::string_view from_outside[] = {
        "sleep", "read", "write", "offload", "resolve", "descriptors", "carrier"};
    for (const std::string_view kind : from_outside)
        if (f.waits_for == kind) return false;
    return true;
}

// Steps 1 to 4. `again`: it would be so, but for a kernel thread that may be about to end.
bool stands_still(std::vector<fiber_info>& all, bool& again) {
    if (!sched::cluster::nothing_can_run_anywhere()) return false;
    const bool were_at_rest = os::at_rest::are_all();
    all = fibers();
    bool any = false;
    for (const fiber_info& f : all) {
        if (!needs_another(f)) return false;
        any |= f.state == fiber_state::waiting;
    }
    if (!any) return false;
    again = true;
    return were_at_rest && os::at_rest::are_all() && sched::cluster::nothing_can_run_anywhere();
}

// Each cycle once. Its first fiber waits there for ever.
bool is_new(const deadlock_cycle& c) {
    static auto& reported = *new std::set<std::pair<std::uint64_t, int>>;  // Carriers outlive
                                                                           // statics.
    const deadlock_member& first = c.members.front();
    return reported.emplace(first.fiber.value(), first.thread).second;
}

std::string line(const fiber_info& f) {
    std::string text = "  fiber " + std::to_string(f.id.value());
    if (!f.name.empty()) text += " \"" + f.name + "\"";
    text += " waits for " + std::string{f.waits_for};
    char place[32] = "";
    if (std::string_view{f.waits_for} == "join")
        std::snprintf(place, sizeof place, " of fiber %llu",
                      static_cast<unsigned long long>(f.waits_in));
    else if (std::string_view{f.waits_for} == "select")
        std::snprintf(place, sizeof place, ", %llu cases",
                      static_cast<unsigned long long>(f.waits_in));
    else if (f.waits_in != 0)
        std::snprintf(place, sizeof place, " %#llx", static_cast<unsigned long long>(f.waits_in));
    return text + place + "\n";
}

// Of a fiber that nothing will resume. No sanitizer watches: the threads that wrote are at rest.
UMS_UNINSTRUMENTED os::call_list stack(fiber_id id) {
    os::call_list calls;
    // sync(slab_list): sees the headers.
    for (const mem::slab* s = mem::slab_list.load(base::acquire); s != nullptr; s = s->next) {
        for (std::uint32_t i = 0; i < s->carved; ++i) {
            const auto& f = *static_cast<const sched::fiber*>(s->head(i));
            // Not get(), which is a function of its own without optimisation, and instrumented.
            if (__atomic_load_n(reinterpret_cast<const std::uint64_t*>(&f.id), __ATOMIC_ACQUIRE) !=
                id.value())
                continue;
            const void* at[os::call_list::most];
            const std::size_t n = arch::backtrace(f.context, at, std::size(at));
            for (std::size_t k = 0; k < n; ++k)
                if (!calls.add(reinterpret_cast<std::uintptr_t>(at[k]) - 1)) break;
        }
    }
    return calls;
}

void tell(const std::vector<fiber_info>& all) {
    std::vector<const fiber_info*> waiting;
    for (const fiber_info& f : all)
        if (f.state == fiber_state::waiting) waiting.push_back(&f);
    std::string text;
    const auto add = [](void* to, const char* more, std::size_t n) {
        static_cast<std::string*>(to)->append(more, n);
    };
    const auto lines = std::make_unique<os::source_lines>(add, &text);
    std::vector<os::call_list> stacks;
    for (std::size_t i = 0; i < std::min(waiting.size(), most_stacks); ++i)
        lines->want(stacks.emplace_back(stack(waiting[i]->id)));
    lines->look_up();
    text = "ums: nothing can run any more: " + std::to_string(waiting.size()) +
           (waiting.size() == 1 ? " fiber waits" : " fibers wait") +
           ", and no deadline, descriptor or other thread is left to wake one:\n";
    for (std::size_t i = 0; i < std::min(waiting.size(), most_told); ++i) {
        text += line(*waiting[i]);
        if (i < stacks.size()) lines->write(stacks[i], "    ");
    }
    if (waiting.size() > most_told)
        text += "  and " + std::to_string(waiting.size() - most_told) + " more; `ums ps " +
                std::to_string(getpid()) + "` lists them\n";
    if (what_to_do == deadlock_check::report)
        text +=
            "ums: the program goes on waiting. UMS_DEBUG=deadlock=exit ends it here, "
            "deadlock=off says nothing.\n";
    std::fputs(text.c_str(), stderr);
}

// A carrier that is about to wait calls this. Returns whether it may be called again.
bool on_standstill() noexcept {
    // sync(standstill): sees what the one before has told.
    if (is_looking.exchange(true, base::acquire)) return true;  // It looks once more later.
    struct end {
        ~end() { is_looking.store(false, base::release); }  // sync(standstill)
    } over;
    bool any = false, again = false;
    for (const deadlock_cycle& c : find_deadlocks()) {
        if (!is_new(c)) continue;
        any = true;
        std::fputs(to_string(c).c_str(), stderr);
    }
    std::vector<fiber_info> all;
    if (!is_told && stands_still(all, again)) {
        is_told = any = true;
        tell(all);
    }
    if (!any) return again;
    sched::dump_trace();
    if (what_to_do == deadlock_check::abort) std::abort();
    if (what_to_do == deadlock_check::exit) _exit(2);
    return false;
}

}  // namespace

void watch_for_standstill(deadlock_check what) noexcept {
    what_to_do = what;
    is_told = false;
    sched::on_standstill = what == deadlock_check::off ? nullptr : &on_standstill;
}

}  // namespace ums::rt
