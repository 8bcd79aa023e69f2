// SPDX-License-Identifier: MIT
#pragma once

// sync/wait_list.hpp: waiters and how they are woken.
//
// Every blocking type of src/sync/ is a state, a list of waiters and this protocol:
//
//   waiter                                    waker
//   lock; look at the state;                  lock; change the state;
//   not yet: push itself; park_on():          pop a waiter, write into it what it gets;
//     unlock; park                            unlock; wake(it)
//
// No wake-up is lost: the waiter looks and pushes in one section, so a waker either changed the
// state before (the waiter sees it) or finds the waiter in the list. And none is stray: a waiter
// that was popped is woken exactly once, and parks until that wake() has come. A waiter that gives
// up (deadline, stop) takes the lock. If it is still in the list it removes itself, so it will not
// be woken. If it is not, a waker has popped it, has given it what it waited for, and will wake it:
// it waits for the wake(), and its wait has succeeded.
//
// Destruction right after wake-up: the waker's last access to the object is its unlock, which comes
// before wake(); a waiter's last access comes before its park, or is the section in which it gave
// up. So once a waiter has returned the object may be destroyed. (os/lock.hpp: an unlock's futex
// call names only the address.)
//
// Cost: two short lock sections (an uncontended read-modify-write to take each) and the park.

#include <stop_token>

#include "base/assert.hpp"
#include "os/clock.hpp"
#include "os/lock.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums::impl {

// Lies on the stack of the waiting fiber or thread. Types derive from it to say more.
struct waiter {
    explicit waiter(sched::parkable& self) noexcept : who{&self} {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    sched::parkable* const who;

    // Guarded by the list's lock:
    waiter* next = nullptr;
    waiter* previous = nullptr;
    bool is_queued = false;  // It is in the list, and no waker is about to wake it.
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

// --- These require the list's lock: ---

[[nodiscard]] inline bool empty(const wait_list& list) noexcept { return list.first == nullptr; }

void push_back(wait_list& list, waiter& w) noexcept;
void push_front(wait_list& list, waiter& w) noexcept;
void remove(wait_list& list, waiter& w) noexcept;  // Requires: w is queued here.

// Returns the first waiter, or null. A caller that pops a waiter wakes it after the lock is
// released, by `wake(*w->who)`. From then on the waiter may be gone.
[[nodiscard]] waiter* pop(wait_list& list) noexcept;

// Pops all waiters, linked by `next`; the caller reads `next` before it wakes each.
[[nodiscard]] waiter* pop_all(wait_list& list) noexcept;

// Requires: `w` is the caller's own and queued, and `guard` holds the lock. Parks
// without the lock. reason::wake: a waker popped `w`, and the lock is not held. Otherwise `w` was
// withdrawn at the deadline or the stop, and the lock is held again, so that the caller can correct
// what counts the waiters.
[[nodiscard]] reason park_on(list_guard& guard, waiter& w, nanoseconds until = os::never,
                             const std::stop_token* stop = nullptr) noexcept;

// Wakes each waiter of a list that pop_all() returned. Call without the lock.
void wake_all(waiter* list) noexcept;

}  // namespace ums::sync
