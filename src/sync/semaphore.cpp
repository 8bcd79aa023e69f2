// SPDX-License-Identifier: MIT
//
// The word is one of
//
//   2 * n        n permits, no waiter
//   address + 1  no permit, one waiter, which is in no list: the sole waiter
//   1            no permit, the waiters are in the list, in the order of arrival (crowd)
//
// It is "crowd" exactly while the list is not empty, and changes to and from "crowd" only under the
// list's lock. A semaphore that passes a turn between two fibers never has more than one waiter, so
// it needs no lock at all. The second waiter moves the first into the list, before itself.
//
// No permit is lost, and none is overtaken. Permits and waiters never exist at the same time,
// because one word says which there are. A release() reads the word and in one compare-and-swap
// either adds permits if no waiter is there, or takes the sole waiter, whose wake-up is its permit.
// Or it finds a crowd, takes the lock and pops the first waiter. A waiter puts itself into the word
// or the list only while there is no permit: by the compare-and-swap from zero, or under the lock
// with "crowd" in the word, when no permit can be added without that lock.
//
// A waiter that gives up takes itself out of the word by compare-and-swap. If that fails, either it
// was moved into the list, and continues there under the lock as sync/wait_list.hpp says. Or a
// release() has taken it and will wake it; the waiter waits for that, and has its permit. Its
// address cannot come into the word a second time meanwhile, because only the waiter itself puts it
// there.
//
// Destruction right after wake-up: a release()'s last access to the object is its compare-and-swap.
// With a crowd it is its unlock, and by then it has popped a waiter that it has not woken yet,
// which keeps the object alive.

#include "ums/semaphore.hpp"

#include "sync/wait_list.hpp"

namespace ums::impl {

namespace {

using namespace sync;
using word = base::atomic_ref<std::uintptr_t>;

constexpr std::uintptr_t waiting = 1, crowd = waiting, permit = 2;
static_assert(alignof(waiter) > waiting);

std::uintptr_t in_word(const waiter& w) noexcept {
    return reinterpret_cast<std::uintptr_t>(&w) | waiting;
}
waiter& sole_waiter(std::uintptr_t seen) noexcept {
    return *reinterpret_cast<waiter*>(seen & ~waiting);
}

bool take(word at, std::uintptr_t& seen) noexcept {
    while (seen >= permit && (seen & waiting) == 0)
        // sync(semaphore): sees what happened before the release() of this permit.
        if (at.compare_exchange(seen, seen - permit, base::acquire, base::relaxed)) return true;
    return false;
}

// Requires: the lock. Takes a permit, or makes a crowd of the waiter in the word.
bool take_or_gather(semaphore_state& s) noexcept {
    const word at{s.word};
    std::uintptr_t seen = at.load(base::relaxed);
    while (seen != crowd) {
        if (take(at, seen)) return true;
        // sync(semaphore): sees the sole waiter's fields.
        if (seen != crowd && at.compare_exchange(seen, crowd, base::acquire, base::relaxed)) {
            if (seen != 0) push_back(s.waiters, sole_waiter(seen));
            return false;
        }
    }
    return false;
}

// Requires: the lock. Call after a waiter has left the list: the word may not say "crowd" for an
// empty list.
void disperse(semaphore_state& s) noexcept {
    // relaxed: nothing is published, and only holders of the lock change a crowd's word.
    if (empty(s.waiters)) word{s.word}.store(0, base::relaxed);
}

// Requires: the caller is in the word, or was a moment ago.
bool wait_alone(semaphore_state& s, waiter& me, nanoseconds until,
                const std::stop_token* stop) noexcept {
    if (sched::park(sched::park_kind::internal, until, stop) == reason::wake) return true;
    std::uintptr_t seen = in_word(me);
    // relaxed: nothing is published.
    if (word{s.word}.compare_exchange(seen, 0, base::relaxed, base::relaxed)) return false;
    {
        const list_guard guard{s.waiters};
        if (me.is_queued) {
            remove(s.waiters, me);
            disperse(s);
            return false;
        }
    }
    sched::park(sched::park_kind::internal);  // The wake() is on its way.
    return true;
}

[[gnu::noinline]] bool wait_in_crowd(semaphore_state& s, waiter& me, nanoseconds until,
                                     const std::stop_token* stop) noexcept {
    list_guard guard{s.waiters};
    if (take_or_gather(s)) return true;
    push_back(s.waiters, me);
    if (park_on(guard, me, until, stop) == reason::wake) return true;
    disperse(s);
    return false;
}

bool acquire_slow(semaphore_state& s, nanoseconds until, const std::stop_token* stop) noexcept {
    const word at{s.word};
    std::uintptr_t seen = at.load(base::relaxed);
    waiter me{sched::this_parkable()};
    const sched::wait now{*me.who, sched::wait_kind::semaphore, &s};
    for (;;) {
        if (take(at, seen)) return true;
        if (seen != 0) return wait_in_crowd(s, me, until, stop);
        // sync(semaphore): publishes the waiter's fields to the release() that takes it.
        if (at.compare_exchange(seen, in_word(me), base::release, base::relaxed))
            return wait_alone(s, me, until, stop);
    }
}

// Returns false if there is no crowd any more.
[[gnu::noinline]] bool release_to_crowd(semaphore_state& s, std::uintptr_t n) noexcept {
    list_guard guard{s.waiters};
    const word at{s.word};
    if (at.load(base::relaxed) != crowd) return false;
    waiter* const first = pop(s.waiters);
    waiter* last = first;
    for (--n; n != 0 && !empty(s.waiters); --n) last = last->next = pop(s.waiters);
    last->next = nullptr;
    // sync(semaphore): publishes to the callers that take what is left.
    at.store(empty(s.waiters) ? n * permit : crowd, base::release);
    guard.unlock();
    wake_all(first);
    return true;
}

// Adds `n` permits, within what `add` allows.
template <class Add>
void release_with(semaphore_state& s, std::uintptr_t n, Add add) noexcept {
    const word at{s.word};
    std::uintptr_t seen = at.load(base::relaxed);
    for (;;) {
        if ((seen & waiting) == 0) {
            // sync(semaphore): publishes to the callers that take the permits.
            if (at.compare_exchange(seen, add(seen / permit) * permit, base::release,
                                    base::relaxed))
                return;
        } else if (seen != crowd) {
            // sync(semaphore): sees the sole waiter's fields; publishes to the callers that take
            // the other permits.
            if (at.compare_exchange(seen, (n - 1) * permit, base::acq_rel, base::relaxed))
                return sched::wake(*sole_waiter(seen).who);
        } else {
            if (release_to_crowd(s, n)) return;
            seen = at.load(base::relaxed);
        }
    }
}

}  // namespace

void semaphore_calls::acquire(semaphore_state& s) noexcept {
    const word at{s.word};
    std::uintptr_t seen = at.load(base::relaxed);
    if (take(at, seen)) return;
    waiter me{sched::this_parkable()};
    // sync(semaphore): as in acquire_slow().
    if (seen == 0 && at.compare_exchange(seen, in_word(me), base::release, base::relaxed)) {
        const sched::wait now{*me.who, sched::wait_kind::semaphore, &s};
        return sched::park(sched::park_kind::internal);
    }
    acquire_slow(s, os::never, nullptr);
}

bool semaphore_calls::try_acquire(semaphore_state& s) noexcept {
    const word at{s.word};
    std::uintptr_t seen = at.load(base::relaxed);
    return take(at, seen);
}

bool semaphore_calls::acquire_until(semaphore_state& s, deadline limit) {
    return acquire_slow(s, os::to_nanoseconds(limit), nullptr);
}

bool semaphore_calls::acquire_or_stop(semaphore_state& s, const std::stop_token& stop,
                                      deadline limit) {
    return acquire_slow(s, os::to_nanoseconds(limit), &stop);
}

std::ptrdiff_t semaphore_calls::permits(const semaphore_state& s) noexcept {
    // relaxed: the answer may be out of date as soon as it is given.
    const std::uintptr_t seen = word{const_cast<semaphore_state&>(s).word}.load(base::relaxed);
    return (seen & waiting) != 0 ? 0 : static_cast<std::ptrdiff_t>(seen / permit);
}

void semaphore_calls::release(semaphore_state& s, std::ptrdiff_t n, std::ptrdiff_t most) noexcept {
    UMS_ASSERT(n >= 0, "release() of a negative number of permits");
    if (n == 0) return;
    const auto more = static_cast<std::uintptr_t>(n);
    const auto limit = static_cast<std::uintptr_t>(most);
    UMS_ASSERT(more <= limit, "release() of more permits than a semaphore's max()");
    release_with(s, more, [more, limit](std::uintptr_t permits) {
        UMS_ASSERT(more <= limit - permits, "release() of more permits than a semaphore's max()");
        return permits + more;
    });
}

void semaphore_calls::release_if_none(semaphore_state& s) noexcept {
    // A permit that is there is written again: the caller that takes it sees what happened before
    // each of the calls.
    release_with(s, 1, [](std::uintptr_t) { return std::uintptr_t{1}; });
}

}  // namespace ums::impl
