// SPDX-License-Identifier: MIT
//
// Finds deadlocks while everything runs on.
//
// 1. Collect the wait records (sched/fiber/wait_record.hpp) of all live fibers, and of the plain
//    threads that wait.
// 2. Read the owner word of each lock that a record names, once for each lock.
// 3. Each waiter has one edge, to the holder of its lock. Follow them; each cycle of two or more is
//    a candidate.
// 4. Read the members' records again. If all are as in step 1, the cycle is a deadlock.
//
// Why it is a deadlock, and no artefact of reading one thing after the other: a record with the
// same count in steps 1 and 4 was there all the time in between, and step 2 lies in that time; so
// during it every member did nothing but wait for its own lock. Let P be a member, and m the lock
// that step 2 found held by P, which the member before P waits for. P itself waits for another
// lock: the edges of two members lead to different members, and the word of a lock was read once,
// so two members wait for different locks. Only its holder unlocks a lock, so P did not lose m in
// that time; and a fiber gets a lock by trying, or by being handed it while it waits for it, so P
// did not gain m either. It held m at one moment of the interval, so it held m all through it. That
// is true of each member at once: every edge exists at the same moment. And then none can ever
// continue, because each waits, without limit, for what another of them holds.
//
// A waiter that was handed its lock and does not run yet still has a record: its edge leads to
// itself, which is no cycle of two. A waiter that was woken to try again, and finds the lock taken,
// waits in the sense of its record: it has no other way to continue.
//
// A deadlock that exists when the search begins is found, because its records and words never
// change again.
//
// The lock may be gone when its word is read (step 2), or its memory may belong to something else.
// So the kernel reads it, and the value is used as a key and not as a pointer. If step 4 confirms
// the record, the waiter has been in its lock() all the time, and the lock was there. A descriptor
// of a fiber is in memory that stays while the runtime runs; its id tells a fiber from a later one
// on the same stack. The members of a confirmed cycle never end, so their names and stacks can be
// read at leisure.

#include "ums/deadlock.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <set>
#include <unordered_map>
#include <utility>

#include "mem/slab.hpp"
#include "os/clock.hpp"
#include "os/foreign.hpp"
#include "os/lock.hpp"
#include "os/source_lines.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/record/trace.hpp"
#include "sched/report/backtrace.hpp"
#include "sched/run/here.hpp"
#include "sched/run/search.hpp"
#include "ums/this_fiber.hpp"

namespace ums::sched {

namespace {

// A fiber or thread that waits, as its record says.
struct waiter {
    const parkable* who;
    const std::uintptr_t* owner;
    std::uint64_t count;
    // The fiber's id; 0: a plain thread, whose count is the wait's own serial number.
    std::uint64_t fiber;
    int thread;
    friend bool operator==(const waiter&, const waiter&) = default;
};

// Reads what its owner may write at the same moment, or construct anew. ThreadSanitizer would call
// the latter a race.
template <class T>
UMS_UNINSTRUMENTED T peek(const void* at) noexcept {
    // sync(wait): sees what its writer did before.
    return __atomic_load_n(static_cast<const T*>(at), __ATOMIC_ACQUIRE);
}

// Returns whether the fiber waits.
bool read_record(const fiber& f, waiter& w) noexcept {
    const auto count = peek<std::uint64_t>(&f.waits.count);
    if (count % 2 == 0) return false;
    w = {&f, peek<const std::uintptr_t*>(&f.waits.owner), count, peek<std::uint64_t>(&f.id), 0};
    return w.owner != nullptr && w.fiber != 0;
}

std::vector<waiter> threads() {
    std::vector<waiter> all;
    for_each_thread_wait(
        [](const thread_wait& w, void* into) {
            static_cast<std::vector<waiter>*>(into)->push_back(
                {w.who, w.owner, w.serial, 0, w.thread});
        },
        &all);
    return all;
}

std::vector<waiter> collect() {
    std::vector<waiter> all = threads();
    waiter w;
    // sync(slab_list): sees the headers.
    for (mem::slab* s = mem::slab_list.load(base::acquire); s != nullptr; s = s->next) {
        const auto carved = peek<std::uint32_t>(&s->carved);
        for (std::uint32_t i = 0; i < carved; ++i)
            if (read_record(*static_cast<const fiber*>(s->head(i)), w)) all.push_back(w);
    }
    return all;
}

constexpr std::size_t none = ~std::size_t{0};

// Returns for each waiter the one that it waits for.
std::vector<std::size_t> edges(const std::vector<waiter>& all) {
    std::unordered_map<std::uintptr_t, std::size_t> index;
    for (std::size_t i = 0; i < all.size(); ++i)
        index.emplace(reinterpret_cast<std::uintptr_t>(all[i].who), i);
    std::unordered_map<const std::uintptr_t*, std::size_t> holder;  // The holder of each lock.
    std::vector<std::size_t> next(all.size(), none);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto [at, is_new] = holder.emplace(all[i].owner, none);
        if (is_new) {
            constexpr std::uintptr_t flags = alignof(parkable) - 1;
            std::uintptr_t word = 0;
            if (os::read_foreign(all[i].owner, &word, sizeof word))
                if (const auto found = index.find(word & ~flags); found != index.end())
                    at->second = found->second;
        }
        next[i] = at->second;
    }
    return next;
}

using cycle = std::vector<std::size_t>;

std::vector<cycle> cycles(const std::vector<std::size_t>& next) {
    std::vector<cycle> all;
    std::vector<std::size_t> walk(next.size(), none);  // The walk that has visited the waiter.
    for (std::size_t start = 0; start < next.size(); ++start) {
        std::size_t at = start;
        while (at != none && walk[at] == none) {
            walk[at] = start;
            at = next[at];
        }
        if (at == none || walk[at] != start || next[at] == at) continue;
        cycle found;
        for (std::size_t i = at; found.empty() || i != at; i = next[i]) found.push_back(i);
        all.push_back(std::move(found));
    }
    return all;
}

// Step 4.
bool is_unchanged(const waiter& w, const std::vector<waiter>& threads_now) noexcept {
    if (w.fiber == 0)
        return std::find(threads_now.begin(), threads_now.end(), w) != threads_now.end();
    waiter now;
    return read_record(*static_cast<const fiber*>(w.who), now) && now == w;
}

constexpr os::nanoseconds longest_wait_for_a_stack = 10'000'000'000;

// At a standstill, the caller is a carrier that runs no fiber.
void give_way() noexcept {
    if (here{}.self != nullptr)
        this_fiber::yield();
    else
        ::sched_yield();
}

// For a member of a confirmed cycle.
deadlock_member describe(const waiter& w) {
    deadlock_member m;
    m.fiber = fiber_id{w.fiber};
    m.thread = w.thread;
    m.mutex = w.owner;
    if (w.fiber == 0) return m;
    fiber& f = const_cast<fiber&>(*static_cast<const fiber*>(w.who));
    // sync(wait): sees the name, which existed before the wait.
    (void)f.waits.count.load(base::acquire);
    m.name = f.name;
    m.spawned_at = f.spawned_at;
    // The waiter may have been woken to try again, or be on its way to park. It will park, unless
    // its processor is blocked in the kernel. That processor may be this one, so let others run.
    const os::nanoseconds give_up = os::now() + longest_wait_for_a_stack;
    while ((m.stack = backtrace(f)).empty() && os::now() < give_up) give_way();
    return m;
}

std::string who(const deadlock_member& m) {
    if (m.thread != 0) return "a plain thread, tid " + std::to_string(m.thread);
    std::string text = "fiber " + std::to_string(m.fiber.value());
    if (!m.name.empty()) text += " \"" + m.name + "\"";
    return text;
}

}  // namespace

}  // namespace ums::sched

namespace ums {

std::vector<deadlock_cycle> find_deadlocks() {
    using namespace sched;
    const std::vector<waiter> all = collect();
    if (all.empty()) return {};
    // The steps read one after the other. The waiters' side is in program order, and needs no
    // fence.
    base::full_fence();
    const std::vector<std::size_t> next = edges(all);
    base::full_fence();
    std::vector<deadlock_cycle> confirmed;
    for (cycle& c : cycles(next)) {
        const std::vector<waiter> threads_now = threads();
        if (!std::all_of(c.begin(), c.end(),
                         [&](std::size_t i) { return is_unchanged(all[i], threads_now); }))
            continue;
        // Begins with the same member each time: the oldest fiber, or a thread if there is none.
        std::rotate(c.begin(),
                    std::min_element(c.begin(), c.end(),
                                     [&](std::size_t a, std::size_t b) {
                                         return std::pair{all[a].fiber - 1, all[a].thread} <
                                                std::pair{all[b].fiber - 1, all[b].thread};
                                     }),
                    c.end());
        deadlock_cycle& found = confirmed.emplace_back();
        for (const std::size_t i : c) found.members.push_back(sched::describe(all[i]));
    }
    return confirmed;
}

std::string to_string(const deadlock_cycle& cycle) {
    const auto& members = cycle.members;
    std::string text;
    const auto add = [](void* to, const char* more, std::size_t n) {
        static_cast<std::string*>(to)->append(more, n);
    };
    const auto lines = std::make_unique<os::source_lines>(add, &text);
    std::vector<os::call_list> stacks(members.size());
    const auto call = [](const void* return_address) {
        return reinterpret_cast<std::uintptr_t>(return_address) - 1;
    };
    for (std::size_t i = 0; i < members.size(); ++i) {
        for (const void* const one : members[i].stack)
            if (!stacks[i].add(call(one))) break;
        lines->want(stacks[i]);
        if (members[i].spawned_at != nullptr) lines->want(call(members[i].spawned_at));
    }
    lines->look_up();
    text =
        "ums: deadlock: " + std::to_string(members.size()) + " wait for each other in a circle:\n";
    for (std::size_t i = 0; i < members.size(); ++i) {
        char mutex[32];
        std::snprintf(mutex, sizeof mutex, "%p", members[i].mutex);
        text += "  " + sched::who(members[i]) + " waits for mutex " + mutex + ", held by " +
                sched::who(members[(i + 1) % members.size()]) + "\n";
        lines->write(stacks[i], "    ");
        if (members[i].spawned_at != nullptr)
            lines->write(call(members[i].spawned_at), "    spawned at ");
    }
    lines->write_commands();
    return text;
}

std::size_t report_deadlocks(std::FILE* to) {
    const std::vector<deadlock_cycle> all = find_deadlocks();
    for (const deadlock_cycle& c : all) std::fputs(to_string(c).c_str(), to);
    return all.size();
}

}  // namespace ums
