// SPDX-License-Identifier: MIT
#include "sync/lock_order.hpp"

#if defined(UMS_DEBUG)

#include <cstdio>
#include <cstring>

#include "base/assert.hpp"
#include "os/lock.hpp"
#include "sched/run/park.hpp"

namespace ums::sync {

namespace {

using impl::wait_list;
using sched::held_locks;

constinit base::atomic<bool> is_on{true};
constinit base::atomic<std::uint32_t> last_number;

struct edge {
    std::uint32_t held = 0, locked = 0;  // The numbers of two mutexes; 0: free.
    bool is_reported = false;
    char who[80] = {};  // The fiber or thread that first locked them in this order.
};

constexpr std::size_t edges = 4096, probes = 8;
constinit os::lock table_lock;
// Guarded by table_lock:
constinit edge table[edges];
constinit std::size_t victim = 0;

thread_local held_locks held_by_thread;

// Not inlined. It is called on plain threads only, which never change.
[[gnu::noinline]] held_locks& of_thread() noexcept { return held_by_thread; }

held_locks& held_by_caller() noexcept {
    sched::parkable& self = sched::this_parkable();
    return self.is_fiber ? static_cast<sched::fiber&>(self).held : of_thread();
}

std::uint32_t number_of(wait_list& list) noexcept {
    // relaxed: the callers agree on a number and nothing else.
    const base::atomic_ref<std::uint32_t> word{list.spare};
    std::uint32_t number = word.load(base::relaxed);
    if (number != 0) return number;
    const std::uint32_t fresh = last_number.fetch_add(1, base::relaxed) + 1;
    return word.compare_exchange(number, fresh, base::relaxed, base::relaxed) ? fresh : number;
}

edge& slot(std::uint32_t held, std::uint32_t locked, std::size_t probe) noexcept {
    const std::uint64_t hash = (held * 0x9e3779b97f4a7c15u) ^ (locked * 0xc2b2ae3d27d4eb4fu);
    return table[((hash >> 32) + probe) % edges];
}

// Requires: table_lock. Returns null if there is none.
edge* find(std::uint32_t held, std::uint32_t locked) noexcept {
    for (std::size_t i = 0; i < probes; ++i) {
        edge& e = slot(held, locked, i);
        if (e.held == held && e.locked == locked) return &e;
    }
    return nullptr;
}

// Requires: table_lock.
void insert(std::uint32_t held, std::uint32_t locked, const char* who) noexcept {
    edge* into = &slot(held, locked, victim++ % probes);
    for (std::size_t i = 0; i < probes; ++i)
        if (edge& e = slot(held, locked, i); e.held == 0) {
            into = &e;
            break;
        }
    into->held = held;
    into->locked = locked;
    into->is_reported = false;
    std::snprintf(into->who, sizeof into->who, "%s", who);
}

void note_edge(const held_locks::one& held, const held_locks::one& locked) noexcept {
    char me[80] = "a plain thread", other[80];
    const std::uint32_t h = held.number, l = locked.number;
    {
        const os::lock_guard guard{table_lock};
        if (find(h, l) != nullptr) return;
        if (base::describe_caller != nullptr) base::describe_caller(me, sizeof me);
        insert(h, l, me);
        edge* inverse = find(l, h);
        if (inverse == nullptr || inverse->is_reported) return;
        inverse->is_reported = true;
        std::memcpy(other, inverse->who, sizeof other);
    }
    std::fprintf(
        stderr,
        "ums: lock order: %s locks mutex %p while it holds mutex %p; %s has locked them the "
        "other way round, and two who do so at once deadlock\n",
        me, locked.lock, held.lock, other);
}

}  // namespace

void leave_lock_order_behind() noexcept { table_lock.leave_behind(); }

void check_lock_order(bool on) noexcept { is_on.store(on, base::relaxed); }

void before_lock(const void* lock, wait_list& list) noexcept {
    if (!is_on.load(base::relaxed)) return;
    const held_locks& held = held_by_caller();
    if (held.count == 0) return;
    const held_locks::one wanted{lock, number_of(list)};
    for (unsigned i = 0; i < held.count; ++i)
        if (held.lock[i].number != wanted.number) note_edge(held.lock[i], wanted);
}

void after_lock(const void* lock, wait_list& list) noexcept {
    held_locks& held = held_by_caller();
    if (held.count < held_locks::most) held.lock[held.count++] = {lock, number_of(list)};
}

void before_unlock(wait_list& list) noexcept {
    held_locks& held = held_by_caller();
    const std::uint32_t number = number_of(list);
    for (unsigned i = held.count; i-- != 0;)
        if (held.lock[i].number == number) {
            held.lock[i] = held.lock[--held.count];
            return;
        }
}

}  // namespace ums::sync

#endif  // UMS_DEBUG
