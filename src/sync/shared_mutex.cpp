// SPDX-License-Identifier: MIT
//
// The holder's word is 0 if there is no holder; or the address of the writer; or the number of
// readers times one_reader, with has_readers. It may also have has_waiters: the list is not empty.
// Invariants:
//
//   1. has_waiters changes only under the list's lock, together with the list.
//   2. A word with has_waiters is held. Without the list's lock it changes only when a reader
//      leaves that is not the last: no caller enters past the queue, and the last holder leaves by
//      a hand-over, under the lock.
//   3. The first of the list is a writer, or a writer holds the mutex: readers that may go in do.
//
// No waiter is forgotten: a waiter sets has_waiters, under the lock, in the step that sees that it
// may not enter. The last holder's compare-and-swap from a word without has_waiters then fails, and
// it hands the word to the first of the list. A writer that gives up may have been the only one
// that kept the readers behind it out: it lets them in.
//
// Destruction is as in sync/mutex.cpp. The thread that releases the word while the list is empty
// does that last; a hand-over ends with the release of the list's lock, before it wakes the waiters
// that keep the object alive.

#include "ums/shared_mutex.hpp"

#include <system_error>

#include "sched/fiber/wait.hpp"
#include "sync/wait_list.hpp"

namespace ums::impl {

namespace {

using namespace sync;
using word = base::atomic_ref<std::uintptr_t>;

constexpr std::uintptr_t has_waiters = 1, has_readers = 2, one_reader = 8;
static_assert(alignof(parkable) >= one_reader);

enum class mode : bool { exclusive, shared };

std::uintptr_t self() noexcept { return reinterpret_cast<std::uintptr_t>(&sched::this_parkable()); }
std::uintptr_t owner_of(std::uintptr_t seen) noexcept {
    return (seen & has_readers) != 0 ? 0 : seen & ~has_waiters;
}

bool is_one_of_many(std::uintptr_t seen) noexcept {
    return (seen & has_readers) != 0 && seen >= 2 * one_reader;
}

struct shared_waiter : waiter {
    shared_waiter(parkable& self, mode how) noexcept : waiter{self}, wanted{how} {}
    const mode wanted;
};

// What the word becomes if `me` may enter, or 0.
template <mode how>
std::uintptr_t entered(std::uintptr_t seen, std::uintptr_t me) noexcept {
    if constexpr (how == mode::exclusive) return seen == 0 ? me : 0;
    if (seen == 0) return has_readers + one_reader;
    return (seen & (has_readers | has_waiters)) == has_readers ? seen + one_reader : 0;
}

template <mode how>
bool try_enter(word holder, std::uintptr_t me, std::uintptr_t& seen) noexcept {
    while (const std::uintptr_t next = entered<how>(seen, me))
        // sync(shared_mutex): sees what the last writer, or all the last readers, did.
        if (holder.compare_exchange(seen, next, base::acquire, base::relaxed)) return true;
    return false;
}

// Requires: the list's lock. Enters, or sets has_waiters.
template <mode how>
bool enter_or_announce(word holder, std::uintptr_t me) noexcept {
    std::uintptr_t seen = holder.load(base::relaxed);
    for (;;) {
        if (try_enter<how>(holder, me, seen)) return true;
        // relaxed: the list's lock publishes the waiter.
        if ((seen & has_waiters) != 0 ||
            holder.compare_exchange(seen, seen | has_waiters, base::relaxed, base::relaxed))
            return false;
    }
}

// Requires: the list's lock. Takes the readers at the head of the list, linked by `next`, and
// counts them.
waiter* take_readers(wait_list& list, std::uintptr_t& number) noexcept {
    waiter* first = nullptr;
    waiter** end = &first;
    while (!empty(list) && static_cast<shared_waiter*>(list.first)->wanted == mode::shared) {
        waiter* const w = pop(list);
        *end = w;
        end = &w->next;
        ++number;
    }
    *end = nullptr;
    return first;
}

std::uintptr_t waiters_flag(const wait_list& list) noexcept {
    return empty(list) ? 0 : has_waiters;
}

// Requires: the list's lock, a list that is not empty, and that the caller is the last holder, with
// the word still its own. Unlocks.
void hand_over(shared_mutex_state& m, list_guard& guard) noexcept {
    word holder{m.holder};
    std::uintptr_t readers = 0;
    if (waiter* const batch = take_readers(m.waiters, readers)) {
        // sync(shared_mutex): publishes the section to the holders that leave and enter after.
        holder.store(readers * one_reader + has_readers + waiters_flag(m.waiters), base::release);
        guard.unlock();
        wake_all(batch);
        return;
    }
    parkable& who = *pop(m.waiters)->who;
    // relaxed: nobody enters beside the writer, to which the wake-up publishes the section.
    holder.store(reinterpret_cast<std::uintptr_t>(&who) + waiters_flag(m.waiters), base::relaxed);
    guard.unlock();
    sched::wake(who);
}

// Requires: the list's lock. Corrects the word after a waiter has given up, and lets in the readers
// that waited only behind that waiter. Unlocks.
void close_gap(shared_mutex_state& m, list_guard& guard) noexcept {
    word holder{m.holder};
    std::uintptr_t readers = 0;
    waiter* batch = nullptr;
    if (!empty(m.waiters)) {
        // relaxed: has_waiters is set, so if readers hold the word now they hold it until the lock
        // is released.
        if ((holder.load(base::relaxed) & has_readers) == 0) return;
        batch = take_readers(m.waiters, readers);
    }
    // sync(shared_mutex): sees the last writer, for the readers let in. The flag is cleared in the
    // same step, or the last reader could find it set with an empty list.
    holder.fetch_add(readers * one_reader - (empty(m.waiters) ? has_waiters : 0), base::acquire);
    guard.unlock();
    wake_all(batch);
}

template <mode how>
[[gnu::noinline]] bool enter_slow(shared_mutex_state& m, nanoseconds until,
                                  const std::stop_token* stop) {
    parkable& who = sched::this_parkable();
    const auto me = reinterpret_cast<std::uintptr_t>(&who);
    word holder{m.holder};
    // relaxed: only the caller itself stores its own address, or a hand-over did that came before
    // its wake-up.
    if (owner_of(holder.load(base::relaxed)) == me)
        throw std::system_error{
            std::make_error_code(std::errc::resource_deadlock_would_occur),
            "ums: a shared mutex was locked by the fiber or thread that holds it exclusively"};
    shared_waiter w{who, how};
    constexpr auto kind = how == mode::exclusive ? sched::wait_kind::shared_mutex
                                                 : sched::wait_kind::shared_mutex_shared;
    const sched::lock_wait now{who, kind, &m, m.holder,
                               until == os::never && (stop == nullptr || !stop->stop_possible())};
    list_guard guard{m.waiters};
    if (enter_or_announce<how>(holder, me)) return true;
    push_back(m.waiters, w);
    // The mutex was handed over to it.
    if (park_on(guard, w, until, stop) == reason::wake) return true;
    close_gap(m, guard);
    return false;
}

template <mode how>
bool enter(shared_mutex_state& m, nanoseconds until, const std::stop_token* stop) {
    std::uintptr_t seen = 0, me = 0;
    word holder{m.holder};
    if constexpr (how == mode::exclusive)
        me = self();
    else
        seen = holder.load(base::relaxed);
    return try_enter<how>(holder, me, seen) || enter_slow<how>(m, until, stop);
}

template <mode how>
bool try_once(shared_mutex_state& m) noexcept {
    word holder{m.holder};
    std::uintptr_t seen = holder.load(base::relaxed);
    return try_enter<how>(holder, how == mode::exclusive ? self() : 0, seen);
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_unlock(std::uintptr_t seen) noexcept {
    UMS_ASSERT((seen & ~has_waiters) != 0, "unlock() of a shared mutex that nobody holds");
    UMS_ASSERT((seen & has_readers) == 0, "unlock() of a shared mutex that readers hold");
    UMS_ASSERT(false, "unlock() of a shared mutex that another fiber or thread holds");
    __builtin_unreachable();
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_unlock_shared() noexcept {
    UMS_ASSERT(false, "unlock_shared() of a shared mutex that no reader holds");
    __builtin_unreachable();
}

// Hands over, if the caller is the last holder and a waiter is still there.
[[gnu::noinline]] bool leave_to_waiters(shared_mutex_state& m) noexcept {
    list_guard guard{m.waiters};
    // sync(shared_mutex): the hand-over publishes what the readers that left before did, too.
    const std::uintptr_t seen = word{m.holder}.load(base::acquire);
    // All waiters may have given up, or a writer did and let readers in.
    if (empty(m.waiters) || is_one_of_many(seen)) return false;
    hand_over(m, guard);
    return true;
}

}  // namespace

void shared_mutex_calls::lock(shared_mutex_state& m) {
    enter<mode::exclusive>(m, os::never, nullptr);
}
bool shared_mutex_calls::try_lock(shared_mutex_state& m) noexcept {
    return try_once<mode::exclusive>(m);
}
bool shared_mutex_calls::lock_until(shared_mutex_state& m, deadline limit) {
    return enter<mode::exclusive>(m, os::to_nanoseconds(limit), nullptr);
}
bool shared_mutex_calls::lock_or_stop(shared_mutex_state& m, deadline limit,
                                      const std::stop_token& stop) {
    return enter<mode::exclusive>(m, os::to_nanoseconds(limit), &stop);
}

void shared_mutex_calls::lock_shared(shared_mutex_state& m) {
    enter<mode::shared>(m, os::never, nullptr);
}
bool shared_mutex_calls::try_lock_shared(shared_mutex_state& m) noexcept {
    return try_once<mode::shared>(m);
}
bool shared_mutex_calls::lock_shared_until(shared_mutex_state& m, deadline limit) {
    return enter<mode::shared>(m, os::to_nanoseconds(limit), nullptr);
}
bool shared_mutex_calls::lock_shared_or_stop(shared_mutex_state& m, deadline limit,
                                             const std::stop_token& stop) {
    return enter<mode::shared>(m, os::to_nanoseconds(limit), &stop);
}

void shared_mutex_calls::unlock(shared_mutex_state& m) noexcept {
    const std::uintptr_t me = self();
    word holder{m.holder};
    for (;;) {
        std::uintptr_t seen = me;
        // sync(shared_mutex): publishes the section to the next holders.
        if (holder.compare_exchange(seen, 0, base::release, base::relaxed)) return;
        if (owner_of(seen) != me) refuse_unlock(seen);
        if (leave_to_waiters(m)) return;
    }
}

void shared_mutex_calls::unlock_shared(shared_mutex_state& m) noexcept {
    word holder{m.holder};
    std::uintptr_t seen = holder.load(base::relaxed);
    for (;;) {
        if ((seen & has_readers) == 0) refuse_unlock_shared();
        const bool is_last = !is_one_of_many(seen);
        if (is_last && (seen & has_waiters) != 0) {
            if (leave_to_waiters(m)) return;
            seen = holder.load(base::relaxed);
            continue;
        }
        // sync(shared_mutex): release: to the next writer; read-modify-writes of readers continue
        // each other's.
        if (holder.compare_exchange(seen, is_last ? 0 : seen - one_reader, base::release,
                                    base::relaxed))
            return;
    }
}

bool shared_mutex_calls::is_writer(const shared_mutex_state& m) noexcept {
    // relaxed: only the caller itself stores its own address, or a hand-over did that came before
    // its wake-up.
    return owner_of(word{const_cast<shared_mutex_state&>(m).holder}.load(base::relaxed)) == self();
}

bool shared_mutex_calls::is_read(const shared_mutex_state& m) noexcept {
    // relaxed: the caller is one of the readers, or the answer may be out of date as soon as it is
    // given.
    return (word{const_cast<shared_mutex_state&>(m).holder}.load(base::relaxed) & has_readers) != 0;
}

}  // namespace ums::impl
