// SPDX-License-Identifier: MIT
#include "io/wait/shortage.hpp"

#include <algorithm>
#include <cerrno>

#include "base/assert.hpp"
#include "base/chain.hpp"
#include "os/clock.hpp"
#include "os/lock.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"

namespace ums::io::shortage {

namespace {

constexpr os::nanoseconds period = 50'000'000;

struct waiter {
    sched::parkable* who;
    waiter* next = nullptr;
};

constinit os::lock list_lock;
// Guarded by list_lock:
constinit waiter* first = nullptr;
// The number of waiters, for threads that do not hold the lock:
constinit base::atomic<std::uint32_t> count;

// Returns whether the waiter was in the list.
bool remove(waiter& w) noexcept {
    const os::lock_guard guard{list_lock};
    if (!base::chain::try_remove(first, w, &waiter::next)) return false;
    // relaxed: a missed close() costs one period.
    [[maybe_unused]] const std::uint32_t were = count.fetch_sub(1, base::relaxed);
    UMS_DEBUG_ASSERT(were != 0, "a waiter for a descriptor gave up that was not counted");
    return true;
}

}  // namespace

long wait(const limits& l) noexcept {
    const os::nanoseconds until = os::to_nanoseconds(l.until);
    const os::nanoseconds soon = os::now() + period;
    waiter me{&sched::this_parkable()};
    {
        const os::lock_guard guard{list_lock};
        base::chain::push_back(first, me, &waiter::next);
        count.fetch_add(1, base::relaxed);
    }
    const sched::wait now{*me.who, sched::wait_kind::shortage, nullptr};
    const auto why = sched::park(sched::park_kind::internal, std::min(until, soon), l.stop);
    if (why == sched::parkable::reason::wake) return 0;
    if (!remove(me)) {
        sched::park(sched::park_kind::internal);
        return 0;
    }
    if (why == sched::parkable::reason::stop) return -ECANCELED;
    return until <= soon ? -ETIMEDOUT : 0;
}

void end() noexcept {
    if (count.load(base::relaxed) == 0) return;  // relaxed: as above.
    sched::parkable* who = nullptr;
    {
        const os::lock_guard guard{list_lock};
        const waiter* const w = base::chain::pop_front(first, &waiter::next);
        UMS_DEBUG_ASSERT((w != nullptr) == (count.load(base::relaxed) != 0),
                         "the count of waiters for a descriptor is not that of the list");
        if (w == nullptr) return;
        count.fetch_sub(1, base::relaxed);
        who = w->who;
    }
    sched::wake(*who);
}

void leave_behind() noexcept {
    list_lock.leave_behind();
    first = nullptr;
    count.store(0, base::relaxed);  // relaxed: there is one thread.
}

}  // namespace ums::io::shortage
