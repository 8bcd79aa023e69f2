// SPDX-License-Identifier: MIT
//
// The owner's word holds the address of the holder (0: there is none) and three flags.
//
//   has_waiters  the list has a waiter that has not been woken.
//   one_woken    barging: the first of the list was woken to try again and has not tried yet; no
//                other is woken meanwhile. It stays in the list until it has the mutex.
//   raised       the waiters lend their priority to the holder (sched/lock/urgency.hpp). Set under
//                the list's lock, with the holder in the word: from then on the holder's unlock()
//                takes the list's lock before the word changes, so code that holds that lock may
//                touch the holder, and a lender may name it. The holder clears the flag there.
//
// The flags change only under the list's lock, together with the list. So under that lock the owner
// may store the word: meanwhile other threads change it only by taking a free mutex.
//
// No waiter is forgotten: a waiter sets has_waiters under the lock while the mutex is held. The
// holder's unlock then either wakes the first waiter or sees one_woken. In the second case the
// woken waiter will take the mutex, or will find that it was handed it, or will clear one_woken and
// wait again while another fiber holds the mutex; that holder then finds has_waiters without
// one_woken when it unlocks.
//
// A waiter does not starve. While it sleeps, those before it have their turns. While it is the
// first, each unlock wakes it, or overtakes it because it was woken and has no processor yet. On
// one processor it gets none as long as a holder computes on, for a whole time slice, and then it
// comes just when the mutex is held. So an unlock that overtakes it looks at the clock now and
// then, and hands it the mutex when it has waited for `wait_most`. That is the starvation mode of
// Go's sync.Mutex (since Go 1.9; src/internal/sync/mutex.go), with two differences. There the
// waiter itself finds that it starved, once it runs; here, as it may not run, the holder does. And
// there each unlock in a crowd, whose members all wait that long, hands the mutex over in the order
// of arrival, with a switch for each section; here the first is overtaken for `turn_least` all the
// same, hundreds of times as long as a switch takes.
//
// The unlock's last access to the object is its release of the word, or of the list's lock before
// it wakes a waiter that uses the object until then: see sync/wait_list.hpp. An unlock releases
// both, first the word and then the list's lock, only when there is a waiter that it wakes, or that
// was woken. That keeps the object alive: a woken waiter has to take the list's lock before its
// lock() returns, and one that was popped has yet to be woken.

#include "ums/mutex.hpp"

#include <algorithm>
#include <system_error>

#include "os/cpu/topology.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/lock/urgency.hpp"
#include "sched/run/cluster.hpp"
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

// How long a waiter waits before it is handed the mutex, and how long the first one is overtaken at
// least: see above.
constexpr nanoseconds wait_most = 1'000'000, turn_least = 100'000;

// The pace of the looks at the clock, each of which costs as much as five empty sections: the
// number of holders from one to the next doubles while they take less than `soon`, as far as
// `stretch_most`; if they took longer than `late`, the next one looks.
constexpr nanoseconds soon = 10'000, late = 40'000;
constexpr int stretch_most = 256;

// The list's lock guards all of it.
struct lock_waiter : waiter {
    using waiter::waiter;

    // When it began to wait:
    const std::uint32_t forks = sched::cluster::forks();
    nanoseconds since = 0;
    unsigned overtaken = 0;    // How often it was woken and another fiber was faster.
    unsigned passed_over = 0;  // How often a waiter behind this one was woken before it.
    bool is_owner = false;     // It was popped, and the mutex was handed to it.

    // If it was woken to try: when that was for the first time; when an unlock last looked at the
    // clock, and after how many holders the next look comes.
    nanoseconds first_woken = 0, looked = 0;
    int stretch = 1;

    // Guarded by both locks (sched/lock/urgency.hpp). The code that takes it out of the list or
    // wakes it ends it.
    sched::lender lends;
};

lock_waiter* first_of(const wait_list& list) noexcept {
    return static_cast<lock_waiter*>(list.first);
}

// Takes the mutex if it is free, past those that wait, and counts that it overtakes the woken one.
bool barge(mutex_state& m, std::uintptr_t me, std::uintptr_t& seen) noexcept {
    while (owner_of(seen) == 0)
        // sync(mutex): sees what the last holder did before its unlock, and publishes what this one
        // is to a waiter that lends to it.
        if (word{m.owner}.compare_exchange(seen, seen | me, base::acq_rel, base::relaxed)) {
            if ((seen & one_woken) != 0) [[unlikely]]
                --m.until_look;
            return true;
        }
    return false;
}

// Looks again for a while. Also ends when the mutex has been handed to the caller.
bool spin(mutex_state& m, std::uintptr_t me) noexcept {
    word owner{m.owner};
    static const bool alone = os::usable_cpus() == 1;
    if (alone) return false;
    // relaxed: barge() acquires.
    std::uintptr_t seen = owner.load(base::relaxed);
    int spent = 0;
    const auto look_after = [&](int pauses) {
        for (int i = 0; i < pauses; ++i) base::spin_pause();
        spent += pauses;
        seen = owner.load(base::relaxed);
        return owner_of(seen) == me || barge(m, me, seen);
    };
    while (spent < short_spin && (seen & has_waiters) == 0)
        if (look_after(1)) return true;
    while (spent < long_spin && sched::may_look_again())
        if (look_after(spent == 0 ? before_first_look : between_looks)) return true;
    return false;
}

// --- These require the list's lock: ---

// has_waiters, if a waiter beside `woken` is in the list.
std::uintptr_t waiters_flag(const wait_list& list, const waiter* woken) noexcept {
    return empty(list) || (list.first == woken && woken->next == woken) ? 0 : has_waiters;
}

// Takes a free mutex, or sets has_waiters.
bool take_or_announce(mutex_state& m, std::uintptr_t me) noexcept {
    word owner{m.owner};
    std::uintptr_t seen = owner.load(base::relaxed);
    while (!barge(m, me, seen))
        // relaxed: the list's lock orders what the waiter writes before the holder's look there.
        if (owner.compare_exchange(seen, seen | has_waiters, base::relaxed, base::relaxed))
            return false;
    return true;
}

// The waiter comes first, as the one that was woken to try. That it does not count as queued makes
// a wait that gives up wait for the wake-up: see park_on().
void mark_woken(wait_list& list, lock_waiter& w) noexcept {
    if (list.first != &w) {
        remove(list, w);
        push_front(list, w);
    }
    w.is_queued = false;
}

// The woken waiter tries: takes a free mutex, or one that it has already, and leaves the list; or
// waits again. Clears one_woken.
bool take_or_stay(mutex_state& m, lock_waiter& w, std::uintptr_t me) noexcept {
    word owner{m.owner};
    std::uintptr_t seen = owner.load(base::relaxed);
    w.is_queued = true;
    for (;;) {
        const bool is_mine = owner_of(seen) == 0 || owner_of(seen) == me;
        const std::uintptr_t next = (seen & ~one_woken) | (is_mine ? me : has_waiters);
        // sync(mutex): as in barge(); also sees the section of a holder that handed it over.
        if (!owner.compare_exchange(seen, next, base::acq_rel, base::relaxed)) continue;
        if (is_mine)
            remove(m.waiters, w);
        else
            ++w.overtaken;
        return is_mine;
    }
}

// Whether an unlock that overtakes the woken waiter hands it the mutex. If not, says when to look
// again.
[[gnu::noinline]] bool is_due(mutex_state& m, lock_waiter& w) noexcept {
    const nanoseconds now = os::now(), took = now - w.looked;
    if (now - w.since >= wait_most && now - w.first_woken >= turn_least) return true;
    w.looked = now;
    if (took > late)
        w.stretch = 1;
    else if (took < soon)
        w.stretch = std::min(2 * w.stretch, stretch_most);
    m.until_look = w.stretch;
    return false;
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

// Makes the waiters lend to the holder. `newest` is the waiter that came last and begins to lend
// with this; null: the holder is new.
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

// The holder calls this when it is about to release the mutex for which it was lent something.
[[gnu::cold, gnu::noinline]] void give_back(mutex_state& m, parkable& holder) noexcept {
    if (!holder.is_fiber) return;
    const urgency::section all_lists;
    for_each_lender(m.waiters, [](sched::lender& d) { urgency::take_back(d); });
    urgency::settle_less(static_cast<sched::fiber*>(&holder));
}

// `w` has left the list, or is woken.
[[gnu::cold, gnu::noinline]] void end_lending(lock_waiter& w) noexcept {
    const urgency::section all_lists;
    urgency::settle_less(urgency::end(w.lends));
}

// The most urgent waiter, of equals the first; but before that, the first waiter that was passed
// over so often that it is its turn. Each waiter before it counts that it was passed over.
[[gnu::cold, gnu::noinline]] lock_waiter* most_urgent(wait_list& list) noexcept {
    if (empty(list)) return nullptr;
    lock_waiter* most = first_of(list);
    int highest = least_priority - 1;
    waiter* w = list.first;
    do {
        if (static_cast<lock_waiter*>(w)->passed_over >= overtakes_most) {
            most = static_cast<lock_waiter*>(w);
            break;
        }
        if (const int its = urgency::of(*w->who); its > highest) {
            most = static_cast<lock_waiter*>(w);
            highest = its;
        }
        w = w->next;
    } while (w != list.first);
    for (w = list.first; w != most; w = w->next) ++static_cast<lock_waiter*>(w)->passed_over;
    return most;
}

// In the child of a fork() (docs/fork-and-pause.md): those that the parent's fibers and threads
// left in the list, all of them in front of the child's own, would never take what they are given.
void drop_left_behind(mutex_state& m) noexcept {
    lock_waiter* w = first_of(m.waiters);
    if (w == nullptr || w->forks == sched::cluster::forks()) [[likely]]
        return;
    do {
        if (w->lends.who != nullptr) end_lending(*w);
        w->is_queued = true;
        remove(m.waiters, *w);
        w = first_of(m.waiters);
    } while (w != nullptr && w->forks != sched::cluster::forks());
    // relaxed: nothing is published.
    word{m.owner}.fetch_and(~(one_woken | (w == nullptr ? has_waiters : 0)), base::relaxed);
}

// --- To here. ---

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
    for (bool is_woken = false;; is_woken = true) {
        const bool has_it = kind == handover::barging && spin(m, me);
        if (has_it && !is_woken) return true;
        list_guard guard{m.waiters};
        drop_left_behind(m);
        if (is_woken ? take_or_stay(m, w, me) : take_or_announce(m, me)) return true;
        if (!is_woken) {
            if (kind == handover::barging) w.since = os::now();
            push_back(m.waiters, w);
        }
        if (urgency::counts()) [[unlikely]]
            lend_to_holder(m, &w);
        if (park_on(guard, w, until, stop) != reason::wake) {
            if (w.lends.who != nullptr) end_lending(w);
            // relaxed, both: nothing is published, and this is under the lock.
            const bool one = (owner.load(base::relaxed) & one_woken) != 0;
            if (waiters_flag(m.waiters, one ? m.waiters.first : nullptr) == 0)
                owner.fetch_and(~has_waiters, base::relaxed);
            return false;
        }
        if (w.is_owner) return true;
    }
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_unlock(std::uintptr_t seen) noexcept {
    UMS_ASSERT(owner_of(seen) != 0, "unlock() of a mutex that nobody holds");
    UMS_ASSERT(false, "unlock() of a mutex that another fiber or thread holds");
    __builtin_unreachable();
}

// Requires: the list's lock, and that the word is the caller's. Makes it the waiter's.
void give(mutex_state& m, lock_waiter& to, std::uintptr_t flags_after) noexcept {
    // sync(mutex): publishes the section to the next holder.
    word{m.owner}.store(reinterpret_cast<std::uintptr_t>(to.who) | flags_after, base::release);
    // Waiters that stay may be more urgent than the new holder. It needs the list's lock, or has
    // not been woken, so the mutex stays alive.
    if (urgency::counts() && (flags_after & has_waiters) != 0) [[unlikely]]
        lend_to_holder(m, nullptr);
}

template <handover kind>
[[gnu::noinline]] void unlock_slow(mutex_state& m, std::uintptr_t seen,
                                   std::uintptr_t me) noexcept {
    if (owner_of(seen) != me) refuse_unlock(seen);
    word owner{m.owner};
    list_guard guard{m.waiters};
    drop_left_behind(m);
    seen = owner.load(base::relaxed);  // relaxed: the flags are set under this lock.
    if ((seen & raised) != 0) [[unlikely]] {
        owner.fetch_and(~raised, base::relaxed);
        give_back(m, *reinterpret_cast<parkable*>(me));
        guard.unlock();
        mutex_calls<kind>::unlock(m);
        return;
    }
    if ((seen & one_woken) != 0) {
        if (lock_waiter& woken = *first_of(m.waiters); is_due(m, woken))
            give(m, woken, seen & flags);
        else
            // sync(mutex): publishes the section to the next holder.
            owner.store(seen & flags, base::release);
        return;
    }
    lock_waiter* const w = kind == handover::barging && urgency::counts() ? most_urgent(m.waiters)
                                                                          : first_of(m.waiters);
    if (w == nullptr) {
        // The waiter gave up, and cleared has_waiters. The word's release must come last.
        guard.unlock();
        mutex_calls<kind>::unlock(m);
        return;
    }
    if (w->lends.who != nullptr) [[unlikely]]
        end_lending(*w);
    parkable& who = *w->who;
    if (kind == handover::fair || w->overtaken >= overtakes_most) {
        remove(m.waiters, *w);
        w->is_owner = true;
        give(m, *w, waiters_flag(m.waiters, nullptr));
    } else {
        mark_woken(m.waiters, *w);
        w->looked = os::now();
        if (w->first_woken == 0) w->first_woken = w->looked;
        m.until_look = w->stretch;
        // sync(mutex): publishes the section to the next holder.
        owner.store(waiters_flag(m.waiters, w) | one_woken, base::release);
    }
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
    if (barge(m, me, seen)) return true;
    return lock_slow<kind>(m, me, until, stop);
}

}  // namespace

template <handover kind>
void mutex_calls<kind>::lock(mutex_state& m) {
    ums::impl::lock_until<kind>(m, os::never, nullptr);
}

template <handover kind>
bool mutex_calls<kind>::try_lock(mutex_state& m) noexcept {
    word owner{m.owner};
    std::uintptr_t seen = owner.load(base::relaxed);
    return barge(m, self(), seen);
}

template <handover kind>
bool mutex_calls<kind>::lock_until(mutex_state& m, deadline limit) {
    return ums::impl::lock_until<kind>(m, os::to_nanoseconds(limit), nullptr);
}

template <handover kind>
bool mutex_calls<kind>::lock_or_stop(mutex_state& m, deadline limit, const std::stop_token& stop) {
    return ums::impl::lock_until<kind>(m, os::to_nanoseconds(limit), &stop);
}

template <handover kind>
void mutex_calls<kind>::unlock(mutex_state& m) noexcept {
    const std::uintptr_t me = self();
    word owner{m.owner};
    std::uintptr_t seen = owner.load(base::relaxed);
    for (;;) {
        const std::uintptr_t rest = seen ^ me;  // The flags, if the caller is the holder.
        if (rest != 0 && ((rest & ~has_waiters) != one_woken || m.until_look <= 0)) break;
        // sync(mutex): publishes the section to the next holder.
        if (owner.compare_exchange(seen, rest, base::release, base::relaxed)) return;
    }
    unlock_slow<kind>(m, seen, me);
}

bool unlock_alone(mutex_state& m, parkable& me) noexcept {
    word owner{m.owner};
    std::uintptr_t seen = reinterpret_cast<std::uintptr_t>(&me);
    // relaxed: this only looks.
    if (owner.load(base::relaxed) != seen) return false;
    // sync(mutex): as in unlock(). Only a new waiter makes it fail.
    return owner.compare_exchange(seen, 0, base::release, base::relaxed);
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
