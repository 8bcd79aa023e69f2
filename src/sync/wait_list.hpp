// SPDX-License-Identifier: MIT
#pragma once

// sync/wait_list.hpp: who waits for something, and how he is told.
//
// Every blocking type of src/sync/ is a state, a list of waiters and this protocol:
//
//   waiter                                    waker
//   lock; look at the state;                  lock; change the state;
//   not yet: push itself; park_on():          pop a waiter, write into it what it gets;
//     unlock; park                            unlock; wake(it)
//
// No wake-up is lost: the waiter looks and pushes in one section, so a waker either changed the state
// before (it is seen) or finds the waiter in the list. And none is stray: a waiter that was popped is
// woken exactly once, and parks until that wake() has come; one that gives up (deadline, stop) takes the lock,
// and if it is in the list still it removes itself, so nobody will wake it; if it is not, somebody
// has popped it and will wake it, and has given it what it waited for: it waits for the wake() and the
// wait has succeeded.
//
// Destruction right after wake-up. The waker's last access to the object is its unlock, which comes before
// wake(); a waiter's last access is before its park, or the section in which it gave up. So once
// a waiter has returned the object may go. (os/lock.hpp: an unlock's futex call names only the address.)
//
// Cost: two short lock sections (an uncontended read-modify-write to take each) and the park.

#include <stop_token>

#include "base/assert.hpp"
#include "os/clock.hpp"
#include "os/lock.hpp"
#include "sched/park.hpp"
#include "sched/waiting_for.hpp"
#include "sched/wake.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums::impl {

// On the stack of who waits. Types derive from it to say more.
struct waiter {
    explicit waiter(sched::parkable& self) noexcept : who{&self} {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    sched::parkable* const who;

    // Guarded by the list's lock:
    waiter* next = nullptr;
    waiter* previous = nullptr;
    bool is_queued = false;
};

}  // namespace ums::impl

namespace ums::sync {

using impl::wait_list;
using impl::waiter;
using os::nanoseconds;
using sched::parkable;
using reason = parkable::reason;

class list_guard : public os::word_guard {
public:
    explicit list_guard(wait_list& list) noexcept : word_guard{list.lock}, list_{list} {}

    [[nodiscard]] wait_list& list() const noexcept { return list_; }

private:
    wait_list& list_;
};

// --- Under the list's lock: ---

[[nodiscard]] inline bool empty(const wait_list& list) noexcept { return list.first == nullptr; }

void push_back(wait_list& list, waiter& w) noexcept;
void push_front(wait_list& list, waiter& w) noexcept;
void remove(wait_list& list, waiter& w) noexcept;  // Requires: w is queued here.

// The first, or null. Who pops a waiter wakes it, after the lock is released: wake(*w->who). From that on
// the waiter may be gone.
[[nodiscard]] waiter* pop(wait_list& list) noexcept;

// All of them, linked by `next`, which must be read before each is woken.
[[nodiscard]] waiter* pop_all(wait_list& list) noexcept;

// Requires: `w` is the caller's own, was pushed in this section, and `guard` holds the lock. Parks without the lock.
// reason::wake: somebody popped `w`; the lock is not held. Else `w` was withdrawn at the deadline or the
// stop and the lock is held again, so that the caller can correct what counts the waiters.
[[nodiscard]] reason park_on(list_guard& guard, waiter& w, nanoseconds until = os::never,
                             const std::stop_token* stop = nullptr) noexcept;

// Wakes each of a list that pop_all() gave. Without the lock.
void wake_all(waiter* list) noexcept;

}  // namespace ums::sync
