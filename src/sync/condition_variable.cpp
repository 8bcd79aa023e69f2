// SPDX-License-Identifier: MIT
//
// A list of waiters and nothing else. A waiter pushes itself before it unlocks its mutex, so a
// notify by whoever changes the state under that mutex afterwards finds it in the list. A notify
// pops waiters under the list's lock, and each that it pops it wakes; a waiter that has given up is
// in the list no more when it leaves the lock. So every notify that finds a waiter ends exactly one
// wait (notify_all: those of all it finds), and that wait says so.
//
// wait_list.spare says whether the list has any waiter. It changes only under the list's lock, with
// the list; a notify reads it without. If that read misses a waiter's push, the push did not happen
// before the notify, and the notify counts as the earlier of the two: nothing in the state that it
// announces can have come after the waiter's look, as both were under the mutex.
//
// Destruction. The condition variable may go as soon as its waiters have been notified. Others use
// the protocol of sync/wait_list.hpp, in which a waiter whose deadline passes takes the list's lock
// to see whether it has been popped; here, that lock may be gone by then. So a waiter that may give
// up has a lock of its own, `leaving`, which who pops it takes too. Under it the waiter sees
// whether it was popped. If not, nobody can pop it while it holds that lock, so no notify_all() can
// be complete, and the list is there. A notify takes the list's lock first and `leaving` second;
// the waiter, the other way round, only tries the second. notify_all() may return without a lock
// when the list is empty, and then *this may go; hence it looks whether the lock is free after it
// has found the list empty: who gave up last may hold it still.
//
// A lock that the library does not know may park inside its unlock(), with the waiter in the list
// already. A wake() would end that park. So such a waiter says when it is ready to be woken, in
// `phase`; a notify that comes before leaves its mark there and does not wake.

#include "ums/condition_variable.hpp"

#include <sched.h>

#include "sync/wait_list.hpp"

namespace ums::impl {

namespace {

using namespace sync;
using os::lock_word;
using word = base::atomic_ref<std::uint32_t>;

enum phase : std::uint32_t { unlocking, waiting, notified };

struct condition_waiter : waiter {
    condition_waiter(parkable& self, bool foreign, nanoseconds until,
                     const std::stop_token* stop) noexcept
        : waiter{self},
          is_foreign{foreign},
          may_give_up{until != os::never || (stop != nullptr && stop->stop_possible())} {}

    const bool is_foreign;
    const bool may_give_up;
    std::uint32_t leaving = 0;
    base::atomic<std::uint32_t> phase{unlocking};
};

// Under the list's lock. Null if there is none.
condition_waiter* take_first(wait_list& list) noexcept {
    auto* w = static_cast<condition_waiter*>(list.first);
    if (w == nullptr) return nullptr;
    if (w->may_give_up) {
        lock_word::acquire(w->leaving);
        (void)pop(list);
        lock_word::release(w->leaving);
    } else {
        (void)pop(list);
    }
    return w;
}

// sync(condition): publishes, to a notify that finds the list empty, who holds the lock.
void count(wait_list& list) noexcept { word{list.spare}.store(!empty(list), base::release); }

bool is_deserted(wait_list& list) noexcept {
    // sync(condition): if the last who gave up has cleared it, the lock below is seen held, or
    // released.
    return word{list.spare}.load(base::acquire) == 0 &&
           // sync(os.lock): its release is the last access of who gave up; *this may go after it.
           word{list.lock}.load(base::acquire) == os::lock_states::free;
}

// Without the lock. The waiter may be gone when it returns.
void tell(condition_waiter& w) noexcept {
    parkable& who = *w.who;
    // sync(condition): publishes what the caller did to a waiter that has not parked yet.
    if (w.is_foreign && w.phase.exchange(notified, base::acq_rel) == unlocking) return;
    sched::wake(who);
}

// False: it was notified, and the list may be gone.
bool give_up(wait_list& list, condition_waiter& w) noexcept {
    for (int tries = 0;; ++tries) {
        lock_word::acquire(w.leaving);
        if (!w.is_queued) {
            lock_word::release(w.leaving);
            return false;
        }
        if (lock_word::try_acquire(list.lock)) break;
        lock_word::release(w.leaving);
        if (tries < 100)
            base::spin_pause();
        else
            ::sched_yield();
    }
    remove(list, w);
    count(list);
    lock_word::release(w.leaving);
    lock_word::release(list.lock);
    return true;
}

void enqueue(wait_list& list, condition_waiter& w) noexcept {
    list_guard guard{list};
    push_back(list, w);
    count(list);
}

bool park_until_notified(wait_list& list, condition_waiter& w, nanoseconds until,
                         const std::stop_token* stop) noexcept {
    if (w.may_give_up) {
        if (sched::park(sched::park_kind::internal, until, stop) == reason::wake) return true;
        if (give_up(list, w)) return false;
    }
    sched::park(sched::park_kind::internal);
    return true;
}

}  // namespace

void condition_calls::notify_one(condition_state& c) noexcept {
    if (is_deserted(c.waiters)) return;
    list_guard guard{c.waiters};
    condition_waiter* const w = take_first(c.waiters);
    count(c.waiters);
    guard.unlock();
    if (w != nullptr) tell(*w);
}

void condition_calls::notify_all(condition_state& c) noexcept {
    if (is_deserted(c.waiters)) return;
    list_guard guard{c.waiters};
    waiter* first = nullptr;
    waiter** end = &first;
    while (condition_waiter* w = take_first(c.waiters)) {
        *end = w;
        end = &w->next;
    }
    *end = nullptr;
    count(c.waiters);
    guard.unlock();
    while (first != nullptr) {
        auto* w = static_cast<condition_waiter*>(first);
        first = w->next;
        tell(*w);
    }
}

bool condition_calls::wait(condition_state& c, const std::unique_lock<mutex>& held, deadline limit,
                           const std::stop_token* stop) noexcept {
    UMS_ASSERT(held.owns_lock(), "wait() on a condition variable with a lock that is not held");
    mutex& m = *held.mutex();
    const nanoseconds until = os::to_nanoseconds(limit);
    condition_waiter w{sched::this_parkable(), false, until, stop};
    enqueue(c.waiters, w);
    m.unlock();
    const bool notified = park_until_notified(c.waiters, w, until, stop);
    m.lock();
    return notified;
}

bool condition_calls::wait(condition_state& c, foreign_lock held, deadline limit,
                           const std::stop_token* stop) noexcept {
    const nanoseconds until = os::to_nanoseconds(limit);
    condition_waiter w{sched::this_parkable(), true, until, stop};
    enqueue(c.waiters, w);
    held.unlock(held.lock);
    std::uint32_t seen = unlocking;
    // sync(condition): acquire sees what a notify that came first had done.
    if (!w.phase.compare_exchange(seen, waiting, base::acq_rel, base::acquire)) return true;
    return park_until_notified(c.waiters, w, until, stop);
}

}  // namespace ums::impl
