// SPDX-License-Identifier: MIT
//
// This is a queue of waiters and nothing else. A waiter is in it before it unlocks its mutex, so a
// notify finds it if the notifier changes the state under that mutex afterwards. A notify wakes
// each waiter that it takes out; a waiter that has given up is out of the queue when it leaves the
// list's lock. So every notify that finds a waiter ends exactly one wait (notify_all: those of all
// waiters it finds), and that wait says so.
//
// The head says where the queue is:
//
//   0        no thread waits.
//   waiter   it is the only one, and in no list. It came with one compare-and-swap, and goes with
//            one: of a notify, or of the next waiter, which puts both into the list.
//   in_list  the waiters are in the list. The head changes to and from this value only under the
//            list's lock.
//
// A condition variable whose waits all happen on one processor becomes biased to it
// (sched/lock/bias.hpp): the list's lock is biased, and the head says "in_list", though the list
// may be empty. So no caller gets past the lock, and inside that processor a wait and a notify need
// no read-modify-write but the mutex's. A caller that takes the lock in the ordinary way has taken
// the bias away, and frees the lock. Waiters that may give up, or that have a lock of their own
// choice, always go the ordinary way.
//
// If a notify's load of the head misses a waiter, the notify counts as the earlier of the two:
// nothing that it announces can have come after the waiter's look, because both were under the
// mutex.
//
// Destruction: the condition variable may be destroyed as soon as its waiters have been notified.
// Other types use the protocol of sync/wait_list.hpp, in which a waiter whose deadline passes takes
// the list's lock to see whether it has been popped; here, that lock may be gone by then. So a
// waiter that may give up always goes into the list, and has a lock of its own, `leaving`, which
// the notify that pops it takes too. Under that lock the waiter sees whether it was popped. If it
// was not, nothing can pop it while it holds the lock, so no notify_all() can be complete, and the
// list still exists. A notify takes the list's lock first and `leaving` second; the waiter takes
// them in the other order, but only tries the second. A notify that needs no lock waits until the
// list's lock is free: the last waiter that gave up, and left the head at 0, may still hold it.
//
// A lock that the library does not know may park inside its unlock(), when the waiter is already in
// the queue. A wake() would end that park. So such a waiter says in `phase` when it is ready to be
// woken; a notify that comes before that leaves its mark there and does not wake.

#include "ums/condition_variable.hpp"

#include <sched.h>

#include <memory>

#include "sched/lock/bias_count.hpp"
#include "sched/lock/inside.hpp"
#include "sync/mutex_state.hpp"
#include "sync/wait_list.hpp"
#include "ums/impl/at_exit.hpp"

namespace ums::impl {

namespace {

using namespace sync;
using os::lock_word;
using word = base::atomic_ref<std::uintptr_t>;

constexpr std::uintptr_t in_list = 1;

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

// A mutex is nothing but its state.
mutex_state& state_of(mutex& m) noexcept {
    static_assert(std::is_standard_layout_v<mutex> && sizeof(mutex) == sizeof(mutex_state));
    return reinterpret_cast<mutex_state&>(m);
}

std::uintptr_t as_head(condition_waiter& w) noexcept {
    return reinterpret_cast<std::uintptr_t>(&w);
}
condition_waiter* only_waiter(std::uintptr_t head) noexcept {
    return reinterpret_cast<condition_waiter*>(head);
}

// `next` is what the list's lock is to become.
void enqueue(condition_state& c, condition_waiter& w,
             std::uint32_t next = os::lock_states::free) noexcept {
    word head{c.head};
    std::uintptr_t seen = 0;
    // sync(condition): publishes the waiter to the notify that takes it out.
    if (!w.may_give_up && next == os::lock_states::free &&
        head.compare_exchange(seen, as_head(w), base::release, base::relaxed))
        return;
    list_guard guard{c.waiters};
    seen = head.load(base::relaxed);
    while (seen != in_list) {
        // sync(condition): sees the only waiter, whose place in the list is set here.
        if (!head.compare_exchange(seen, in_list, base::acquire, base::relaxed)) continue;
        if (seen != 0) push_back(c.waiters, *only_waiter(seen));
        break;
    }
    push_back(c.waiters, w);
    guard.unlock(next);
}

// Requires: the list's lock. Call after a waiter has left the list.
void correct_head(condition_state& c) noexcept {
    // sync(condition): a notify that finds no waiter then finds the lock held, or released.
    if (empty(c.waiters)) word{c.head}.store(0, base::release);
}

// Requires: the list's lock, and that there is a waiter.
condition_waiter* pop_first(wait_list& list) noexcept {
    auto* w = static_cast<condition_waiter*>(list.first);
    if (w->may_give_up) {
        lock_word::acquire(w->leaving);
        remove(list, *w);
        lock_word::release(w->leaving);
    } else {
        remove(list, *w);
    }
    return w;
}

// Takes the first waiter, or all, linked by `next`.
waiter* take(condition_state& c, bool all) noexcept {
    word head{c.head};
    for (;;) {
        // sync(condition): makes the lock's state, read below, no older than the head's.
        std::uintptr_t seen = head.load(base::acquire);
        if (seen != in_list) {
            // sync(condition): as above, and sees the waiter.
            if (seen != 0 && !head.compare_exchange(seen, 0, base::acquire, base::relaxed))
                continue;
            // sync(os.lock): the release of this lock is the last access of a waiter that gave up;
            // *this may be destroyed after it.
            if (base::atomic_ref{c.waiters.lock}.load(base::acquire) != os::lock_states::free)
                list_guard{c.waiters};
            return only_waiter(seen);
        }
        list_guard guard{c.waiters};
        if (head.load(base::relaxed) != in_list) continue;
        if (empty(c.waiters)) {  // The list was biased.
            correct_head(c);
            return nullptr;
        }
        waiter* first = nullptr;
        waiter** end = &first;
        do {
            *end = pop_first(c.waiters);
            end = &(*end)->next;
        } while (all && !empty(c.waiters));
        *end = nullptr;
        correct_head(c);
        return first;
    }
}

// Call without the lock. The waiter may be gone when this returns.
void tell(condition_waiter& w) noexcept {
    parkable& who = *w.who;
    // sync(condition): publishes what the caller did to a waiter that has not parked yet.
    if (w.is_foreign) {
        // Its `is_held` may be of what its lock's unlock() waited for: a foreign wait holds
        // nothing.
        if (w.phase.exchange(notified, base::release) == waiting) sched::wake(who);
        return;
    }
    who.is_held.get() ? sched::resume_held(who) : sched::wake(who);
}

// --- The same inside the processor that this is biased to. False: it is not biased to that of the
// calling fiber. ---

bool is_plain(const waiter& w) noexcept {
    const auto& of = static_cast<const condition_waiter&>(w);
    return !of.may_give_up && !of.is_foreign;
}

UMS_ALWAYS_INLINE bool wait_here(condition_state& c, mutex_state& m) noexcept {
    sched::inside here{c.waiters.lock};
    if (!here.enter()) return false;
    // This comes before the waiter is queued; but no notify finds the list until this fiber leaves
    // the processor.
    if (!unlock_alone(m, here.self())) [[unlikely]] {
        here.leave();
        return false;
    }
    condition_waiter w{here.self(), false, os::never, nullptr};
    push_back(c.waiters, w);
    const sched::wait now{here.self(), sched::wait_kind::condition, &c};
    if (!here.park()) [[unlikely]]
        sched::park(sched::park_kind::internal);
    return true;
}

UMS_ALWAYS_INLINE bool notify_one_here(condition_state& c) noexcept {
    sched::inside here{c.waiters.lock};
    if (!here.enter()) return false;
    auto* const w = static_cast<condition_waiter*>(c.waiters.first);
    if (w != nullptr && is_plain(*w)) [[likely]] {
        remove(c.waiters, *w);
        here.wake(*w->who);
        return true;
    }
    here.leave();
    return w == nullptr;
}

UMS_ALWAYS_INLINE bool take_all_here(condition_state& c, waiter*& taken) noexcept {
    sched::inside here{c.waiters.lock};
    if (!here.enter()) return false;
    waiter* const first = c.waiters.first;
    bool are_plain = true;
    for (waiter* w = first; w != nullptr && are_plain; w = w->next != first ? w->next : nullptr)
        are_plain = is_plain(*w);
    if (are_plain) taken = pop_all(c.waiters);
    here.leave();
    return are_plain;
}

// Returns false if the waiter was notified; the condition variable may then be gone.
bool give_up(condition_state& c, condition_waiter& w) noexcept {
    for (int tries = 0;; ++tries) {
        lock_word::acquire(w.leaving);
        if (!w.is_queued) {
            lock_word::release(w.leaving);
            return false;
        }
        if (lock_word::try_acquire(c.waiters.lock)) break;
        lock_word::release(w.leaving);
        if (tries < 100)
            base::spin_pause();
        else
            ::sched_yield();
    }
    remove(c.waiters, w);
    correct_head(c);
    lock_word::release(w.leaving);
    lock_word::release(c.waiters.lock);
    return true;
}

bool park_until_notified(condition_state& c, condition_waiter& w, nanoseconds until,
                         const std::stop_token* stop) noexcept {
    const sched::wait now{*w.who, sched::wait_kind::condition, &c};
    if (w.may_give_up) {
        if (sched::park(sched::park_kind::internal, until, stop) == reason::wake) return true;
        if (give_up(c, w)) return false;
    }
    sched::park(sched::park_kind::internal);
    return true;
}

}  // namespace

void condition_calls::notify_one(condition_state& c) noexcept {
    if (notify_one_here(c)) return;
    if (waiter* const w = take(c, false)) tell(static_cast<condition_waiter&>(*w));
}

void condition_calls::notify_all(condition_state& c) noexcept {
    waiter* w = nullptr;
    if (!take_all_here(c, w)) w = take(c, true);
    while (w != nullptr) {
        auto& told = static_cast<condition_waiter&>(*w);
        w = w->next;
        tell(told);
    }
}

bool condition_calls::wait(condition_state& c, const std::unique_lock<mutex>& held, deadline limit,
                           const std::stop_token* stop) noexcept {
    UMS_ASSERT(held.owns_lock(), "wait() on a condition variable with a lock that is not held");
    mutex& m = *held.mutex();
    if (limit == deadline::max() && stop == nullptr && wait_here(c, state_of(m))) {
        m.lock();
        return true;
    }
    const nanoseconds until = os::to_nanoseconds(limit);
    condition_waiter w{sched::this_parkable(), false, until, stop};
    std::uint32_t next = os::lock_states::free;
    if (!w.may_give_up) {
        // Guarded by the mutex, which is the same for all waiters of a given time.
        const std::uint32_t mine = sched::bias::mine();
        if (sched::bias_count::note(c.waiters.spare, c.count, mine)) next = mine;
    }
    enqueue(c, w, next);
    m.unlock();
    const bool notified = park_until_notified(c, w, until, stop);
    m.lock();
    return notified;
}

bool condition_calls::wait(condition_state& c, foreign_lock held, deadline limit,
                           const std::stop_token* stop) noexcept {
    const nanoseconds until = os::to_nanoseconds(limit);
    condition_waiter w{sched::this_parkable(), true, until, stop};
    enqueue(c, w);
    held.unlock(held.lock);
    std::uint32_t seen = unlocking;
    // sync(condition): sees what an earlier notify did. relaxed: a later one wakes it.
    if (!w.phase.compare_exchange(seen, waiting, base::relaxed, base::acquire)) return true;
    return park_until_notified(c, w, until, stop);
}

}  // namespace ums::impl

namespace ums {

namespace {

struct notify_at_exit : impl::exit_hook {
    notify_at_exit(condition_variable& c, std::unique_lock<mutex>& held) noexcept
        : told{c}, lock{std::move(held)} {
        run = [](exit_hook& self) noexcept {
            const std::unique_ptr<notify_at_exit> last{static_cast<notify_at_exit*>(&self)};
            // The waiter that gets the mutex may destroy both, so unlock it last (LWG 3343).
            last->told.notify_all();
            last->lock.unlock();
        };
    }
    condition_variable& told;
    std::unique_lock<mutex> lock;
};

}  // namespace

void notify_all_at_fiber_exit(condition_variable& c, std::unique_lock<mutex> lock) {
    UMS_ASSERT(lock.owns_lock(), "notify_all_at_fiber_exit() with a lock that is not held");
    auto hook = std::make_unique<notify_at_exit>(c, lock);
    impl::at_fiber_exit(*hook.release(), impl::exit_stage::last);
}

}  // namespace ums
