// SPDX-License-Identifier: MIT
//
// The owner's word holds the address of the holder (0: there is none) and three flags.
//
//   has_waiters  the list is not empty. Changes only under the list's lock, together with the list.
//   one_woken    barging: a waiter was woken to try again and has not tried yet; other waiters need
//                not be woken meanwhile. Set with the release that wakes it, under the list's lock;
//                cleared by that waiter, when it takes the mutex or under the list's lock.
//   raised       the waiters lend their priority to the holder (sched/lock/urgency.hpp). Set under
//                the list's lock, with the holder in the word: from then on the holder's unlock()
//                takes the list's lock before the word changes, so code that holds that lock may
//                touch the holder, and a lender may name it. The holder clears the flag there.
//
// So under the list's lock the owner may store the word: meanwhile other threads change it only by
// taking a free mutex, or by setting flags under that lock.
//
// No waiter is forgotten: a waiter sets has_waiters under the lock while the mutex is held. The
// holder's unlock then either wakes the first waiter or sees one_woken. In the second case the
// woken waiter will take the mutex, or will clear one_woken and queue again while another fiber
// holds the mutex; that holder then finds has_waiters without one_woken when it unlocks.
//
// The unlock's last access to the object is its release of the word, or of the list's lock before
// it wakes a waiter that uses the object until then: see sync/wait_list.hpp. An unlock releases
// both, first the word and then the list's lock, only when it has popped a waiter. That keeps the
// object alive: either the word says has_waiters, or the popped waiter has yet to return from its
// lock().

#include "ums/mutex.hpp"

#include <algorithm>
#include <system_error>

#include "os/cpu/topology.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/lock/urgency.hpp"
#include "sync/lock_order.hpp"
#include "sync/mutex_state.hpp"
#include "sync/wait_list.hpp"

namespace ums::impl {

namespace {

using namespace sync;
using sched::urgency;
using word = base::atomic_ref<std::uintptr_t>;

constexpr std::uintptr_t has_waiters = 1, one_woken = 2, raised = 4, flags = 7;
static_assert(alignof(parkable) > flags);

// How long a lock() looks again before it parks, if another processor may release the mutex
// meanwhile, counted in pauses. The short time, with a look at every pause, suits any caller, if no
// others wait. The long one is about what it costs to put a processor to sleep and to wake it. It
// is for a caller whose processor would have nothing else to run while another of its cluster runs.
// The caller first leaves the word alone, so that holders with short sections keep the cache line
// for a few dozen of them, then looks often enough to find the mutex free between two long sections
// of one holder. It never waits longer than that: then it sleeps.
constexpr int short_spin = 40, long_spin = 480, before_first_look = 32, between_looks = 8;

std::uintptr_t self() noexcept { return reinterpret_cast<std::uintptr_t>(&sched::this_parkable()); }
std::uintptr_t owner_of(std::uintptr_t seen) noexcept { return seen & ~flags; }

struct lock_waiter : waiter {
    using waiter::waiter;
    unsigned overtaken = 0;  // How often it was woken and another fiber was faster.
    // Guarded by the list's lock: how often a waiter behind this one was woken before it.
    unsigned passed_over = 0;
    bool is_owner = false;  // Guarded by the list's lock: the mutex was handed to it.
    // Guarded by both locks (sched/lock/urgency.hpp). The code that takes it out of the list ends
    // it.
    sched::lender lends;
};

// Takes the mutex if it is free, past those that wait, and clears `clear` in the same step.
bool barge(word owner, std::uintptr_t me, std::uintptr_t& seen, std::uintptr_t clear = 0) noexcept {
    while (owner_of(seen) == 0)
        // sync(mutex): sees what the last holder did before its unlock, and publishes what this one
        // is to a waiter that lends to it.
        if (owner.compare_exchange(seen, (seen & ~clear) | me, base::acq_rel, base::relaxed))
            return true;
    return false;
}

// Looks again for a while. `woken` says that the caller was woken to try.
bool spin(word owner, std::uintptr_t me, std::uintptr_t woken) noexcept {
    static const bool alone = os::usable_cpus() == 1;
    if (alone) return false;
    // relaxed: barge() acquires.
    std::uintptr_t seen = owner.load(base::relaxed);
    int spent = 0;
    const auto look_after = [&](int pauses) {
        for (int i = 0; i < pauses; ++i) base::spin_pause();
        spent += pauses;
        seen = owner.load(base::relaxed);
        return barge(owner, me, seen, woken);
    };
    while (spent < short_spin && (seen & has_waiters) == 0)
        if (look_after(1)) return true;
    while (spent < long_spin && sched::may_look_again())
        if (look_after(spent == 0 ? before_first_look : between_looks)) return true;
    return false;
}

// Requires: the list's lock. Takes a free mutex, or sets has_waiters. Clears `clear` either way.
bool take_or_announce(word owner, std::uintptr_t me, bool others_wait,
                      std::uintptr_t clear) noexcept {
    std::uintptr_t seen = owner.load(base::relaxed);
    for (;;) {
        const bool is_free = owner_of(seen) == 0;
        const std::uintptr_t kept = seen & (one_woken | raised) & ~clear;
        const std::uintptr_t next = is_free ? me | kept | (others_wait ? has_waiters : 0)
                                            : owner_of(seen) | kept | has_waiters;
        // sync(mutex): as in barge().
        if (owner.compare_exchange(seen, next, base::acq_rel, base::relaxed)) return is_free;
    }
}

// Calls each() with the lender of each waiter that has begun to lend, or could.
void for_each_lender(wait_list& list, auto each) noexcept {
    if (empty(list)) return;
    waiter* w = list.first;
    do {
        if (auto& d = static_cast<lock_waiter*>(w)->lends; d.who != nullptr) each(d);
        w = w->next;
    } while (w != list.first);
}

// Requires: the list's lock. Makes the waiters lend to the holder. `newest` is the waiter that came
// last and begins to lend with this; null: the holder is new.
[[gnu::cold, gnu::noinline]] void lend_to_holder(mutex_state& m, lock_waiter* newest) noexcept {
    const urgency::section all_lists;
    if (newest != nullptr) urgency::begin(newest->lends, *newest->who);
    word owner{m.owner};
    std::uintptr_t seen = owner.load(base::relaxed);
    do {
        // The fiber that takes it was woken, or barges past the waiters.
        if (owner_of(seen) == 0) return;
        // What the word says of the holder stays true once the flag is set; until then the holder
        // may not be touched.
        // sync(mutex): acquire sees what the holder is, of barge() or of whoever handed it over.
    } while (!owner.compare_exchange(seen, seen | raised, base::acq_rel, base::relaxed));
    auto& it = *reinterpret_cast<parkable*>(owner_of(seen));
    if (!it.is_fiber) return;
    auto& holder = static_cast<sched::fiber&>(it);
    if (newest != nullptr && (seen & raised) != 0) {
        urgency::lend(newest->lends, holder);
        return urgency::settle_lent(newest->lends);
    }
    for_each_lender(m.waiters, [&](sched::lender& d) { urgency::lend(d, holder); });
    urgency::settle(&holder);
}

// Requires: the list's lock. The holder calls this when it is about to release the mutex for which
// it was lent something.
[[gnu::cold, gnu::noinline]] void give_back(mutex_state& m, parkable& holder) noexcept {
    if (!holder.is_fiber) return;
    const urgency::section all_lists;
    for_each_lender(m.waiters, [](sched::lender& d) { urgency::take_back(d); });
    urgency::settle_less(static_cast<sched::fiber*>(&holder));
}

// Requires: the list's lock. `w` has left the list.
[[gnu::cold, gnu::noinline]] void end_lending(lock_waiter& w) noexcept {
    const urgency::section all_lists;
    urgency::settle_less(urgency::end(w.lends));
}

// Requires: the list's lock. Pops the most urgent waiter, of equals the first; but before that, the
// first waiter that was passed over so often that it is its turn. Each waiter before the popped one
// counts that it was passed over.
[[gnu::cold, gnu::noinline]] waiter* pop_most_urgent(wait_list& list) noexcept {
    if (empty(list)) return nullptr;
    waiter* most = list.first;
    int highest = least_priority - 1;
    waiter* w = list.first;
    do {
        if (static_cast<lock_waiter*>(w)->passed_over >= overtakes_most) {
            most = w;
            break;
        }
        if (const int its = urgency::of(*w->who); its > highest) {
            most = w;
            highest = its;
        }
        w = w->next;
    } while (w != list.first);
    for (w = list.first; w != most; w = w->next) ++static_cast<lock_waiter*>(w)->passed_over;
    remove(list, *most);
    return most;
}

template <handover kind>
[[gnu::noinline]] bool lock_slow(mutex_state& m, std::uintptr_t me, nanoseconds until,
                                 const std::stop_token* stop) {
    word owner{m.owner};
    std::uintptr_t seen = owner.load(base::relaxed);
    if (owner_of(seen) == me)
        throw std::system_error{std::make_error_code(std::errc::resource_deadlock_would_occur),
                                "ums: a mutex was locked by the fiber or thread that holds it"};
    lock_waiter w{*reinterpret_cast<parkable*>(me)};
    const sched::lock_wait now{*w.who, sched::wait_kind::mutex, &m, m.owner,
                               until == os::never && (stop == nullptr || !stop->stop_possible())};
    std::uintptr_t clear = 0;
    for (;;) {
        if (kind == handover::barging && spin(owner, me, clear)) return true;
        list_guard guard{m.waiters};
        if (take_or_announce(owner, me, !empty(m.waiters), clear)) return true;
        clear == 0 ? push_back(m.waiters, w) : push_front(m.waiters, w);
        if (urgency::counts()) [[unlikely]]
            lend_to_holder(m, &w);
        if (park_on(guard, w, until, stop) != reason::wake) {
            if (w.lends.who != nullptr) end_lending(w);
            // relaxed: nothing is published.
            if (empty(m.waiters)) owner.fetch_and(~has_waiters, base::relaxed);
            return false;
        }
        if (w.is_owner) return true;
        ++w.overtaken;
        clear = one_woken;
    }
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_unlock(std::uintptr_t seen) noexcept {
    UMS_ASSERT(owner_of(seen) != 0, "unlock() of a mutex that nobody holds");
    UMS_ASSERT(false, "unlock() of a mutex that another fiber or thread holds");
    __builtin_unreachable();
}

template <handover kind>
[[gnu::noinline]] void unlock_slow(mutex_state& m, std::uintptr_t seen,
                                   std::uintptr_t me) noexcept {
    if (owner_of(seen) != me) refuse_unlock(seen);
    word owner{m.owner};
    list_guard guard{m.waiters};
    // relaxed: the flag is set under this lock.
    if ((owner.load(base::relaxed) & raised) != 0) [[unlikely]] {
        owner.fetch_and(~raised, base::relaxed);
        give_back(m, *reinterpret_cast<parkable*>(me));
        guard.unlock();
        mutex_calls<kind>::unlock(m);
        return;
    }
    const bool by_priority = urgency::counts();
    auto* w = static_cast<lock_waiter*>(
        kind == handover::barging && by_priority ? pop_most_urgent(m.waiters) : pop(m.waiters));
    if (w == nullptr) {
        // The waiter gave up, and cleared has_waiters. The word's release must come last.
        guard.unlock();
        mutex_calls<kind>::unlock(m);
        return;
    }
    if (w->lends.who != nullptr) [[unlikely]]
        end_lending(*w);
    parkable& who = *w->who;
    const std::uintptr_t more = empty(m.waiters) ? 0 : has_waiters;
    w->is_owner = kind == handover::fair || w->overtaken >= overtakes_most;
    // sync(mutex): publishes the section to the next holder.
    owner.store(w->is_owner ? reinterpret_cast<std::uintptr_t>(&who) | more : more | one_woken,
                base::release);
    // Waiters that stay may be more urgent than the new holder. It has not been woken, so the mutex
    // stays alive.
    if (by_priority && w->is_owner && more != 0) [[unlikely]]
        lend_to_holder(m, nullptr);
    guard.unlock();
    sched::wake(who);
}

template <handover kind>
bool lock_until(mutex_state& m, nanoseconds until, const std::stop_token* stop) {
    const std::uintptr_t me = self();
    word owner{m.owner};
    // Read first: with waiters a free word is not zero, and a failed compare-and-swap costs as much
    // as one that succeeds.
    std::uintptr_t seen = owner.load(base::relaxed);
    if (barge(owner, me, seen)) return true;
    return lock_slow<kind>(m, me, until, stop);
}

}  // namespace

template <handover kind>
void mutex_calls<kind>::lock(mutex_state& m) {
    before_lock(m);
    ums::impl::lock_until<kind>(m, os::never, nullptr);
    after_lock(m);
}

template <handover kind>
bool mutex_calls<kind>::try_lock(mutex_state& m) noexcept {
    word owner{m.owner};
    std::uintptr_t seen = owner.load(base::relaxed);
    if (!barge(owner, self(), seen)) return false;
    after_lock(m);
    return true;
}

template <handover kind>
bool mutex_calls<kind>::lock_until(mutex_state& m, deadline limit) {
    if (!ums::impl::lock_until<kind>(m, os::to_nanoseconds(limit), nullptr)) return false;
    after_lock(m);
    return true;
}

template <handover kind>
bool mutex_calls<kind>::lock_or_stop(mutex_state& m, deadline limit, const std::stop_token& stop) {
    if (!ums::impl::lock_until<kind>(m, os::to_nanoseconds(limit), &stop)) return false;
    after_lock(m);
    return true;
}

template <handover kind>
void mutex_calls<kind>::unlock(mutex_state& m) noexcept {
    before_unlock(m);
    const std::uintptr_t me = self();
    word owner{m.owner};
    std::uintptr_t seen = owner.load(base::relaxed);
    while (owner_of(seen) == me && (seen & raised) == 0 &&
           ((seen & has_waiters) == 0 || (seen & one_woken) != 0))
        // sync(mutex): publishes the section to the next holder.
        if (owner.compare_exchange(seen, seen & flags, base::release, base::relaxed)) return;
    unlock_slow<kind>(m, seen, me);
}

bool unlock_alone(mutex_state& m, parkable& me) noexcept {
    word owner{m.owner};
    std::uintptr_t seen = reinterpret_cast<std::uintptr_t>(&me);
    // relaxed: this only looks.
    if (owner.load(base::relaxed) != seen) return false;
    before_unlock(m);
    // sync(mutex): as in unlock(). Only a new waiter makes it fail.
    if (owner.compare_exchange(seen, 0, base::release, base::relaxed)) return true;
    after_lock(m);
    return false;
}

template struct mutex_calls<handover::barging>;
template struct mutex_calls<handover::fair>;

bool is_held_by_caller(const mutex_state& m) noexcept {
    // relaxed: only the caller itself stores its own address, and a hand-over to it came before its
    // wake-up.
    return owner_of(word{const_cast<mutex_state&>(m).owner}.load(base::relaxed)) == self();
}

void throw_too_deep() {
    throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again),
                            "ums: a recursive mutex was locked too often"};
}

}  // namespace ums::impl
