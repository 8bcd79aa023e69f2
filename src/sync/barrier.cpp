// SPDX-License-Identifier: MIT
//
// All of the state lies under the list's lock. No waiter is forgotten: a waiter pushes itself in
// the section in which it has seen that its phase is the current one; complete() changes the phase
// and pops all waiters in one section. Between the last arrival and complete(), while the
// completion function runs without the lock, the phase is not over: a caller that comes to wait
// then queues.
//
// Destruction right after wake-up: complete()'s last access is its unlock, and a waiter that has
// seen the new phase took the lock after that.

#include "ums/barrier.hpp"

#include "sync/wait_list.hpp"

namespace ums::impl {

namespace {

using namespace sync;

void count(barrier_state& b, std::ptrdiff_t n) noexcept {
    UMS_ASSERT(n > 0, "an arrival of less than one at a barrier");
    UMS_ASSERT(n <= b.missing, "an arrival of more than a barrier expects");
    b.missing -= n;
}

}  // namespace

barrier_calls::arrival barrier_calls::arrive(barrier_state& b, std::ptrdiff_t n,
                                             bool drop) noexcept {
    const list_guard guard{b.waiters};
    count(b, n);
    if (drop) --b.expected;
    return {b.phase, b.missing == 0};
}

bool barrier_calls::arrive_and_wait(barrier_state& b) noexcept {
    list_guard guard{b.waiters};
    count(b, 1);
    if (b.missing == 0) return false;
    waiter me{sched::this_parkable()};
    push_back(b.waiters, me);
    const sched::wait now{*me.who, sched::wait_kind::barrier, &b};
    (void)park_on(guard, me);
    return true;
}

void barrier_calls::complete(barrier_state& b) noexcept {
    list_guard guard{b.waiters};
    ++b.phase;
    b.missing = b.expected;
    waiter* const all = pop_all(b.waiters);
    guard.unlock();
    wake_all(all);
}

bool barrier_calls::wait(barrier_state& b, std::uint64_t phase, deadline limit,
                         const std::stop_token* stop) noexcept {
    list_guard guard{b.waiters};
    if (b.phase != phase) return true;
    waiter me{sched::this_parkable()};
    push_back(b.waiters, me);
    const sched::wait now{*me.who, sched::wait_kind::barrier, &b};
    return park_on(guard, me, os::to_nanoseconds(limit), stop) == reason::wake;
}

}  // namespace ums::impl
