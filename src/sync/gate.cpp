// SPDX-License-Identifier: MIT
//
// The word is twice the count, plus a flag.
//
//   has_waiters  the list is not empty. Changes only under the list's lock, together with the list.
//
// While the flag is set the count becomes zero only under the lock; every other change is one
// compare-and-swap of the word. So no waiter is forgotten: a waiter sets the flag, by a
// compare-and-swap that finds the count above zero, and pushes itself in one section. The caller
// that brings the count to zero finds the flag, and then, under the lock, the waiter. A waiter that
// gives up holds the lock, with the flag still set, so the count is not zero and no other thread is
// about to wake it.
//
// Destruction is allowed right after wake-up, also for a caller that has only seen the count at
// zero. The last access of the caller that brings the count there is its compare-and-swap if there
// are no waiters; otherwise it is its unlock, and until then the waiters that it has popped and not
// woken keep the object alive.

#include "ums/impl/gate.hpp"

#include "sync/wait_list.hpp"

namespace ums::impl {

namespace {

using namespace sync;
using word = base::atomic_ref<std::uintptr_t>;

constexpr std::uintptr_t has_waiters = 1, one = 2;

// Stores next(count) if that wakes no waiter. Returns false if it would.
template <class Next>
bool change_quietly(word at, Next next) noexcept {
    std::uintptr_t seen = at.load(base::relaxed);
    for (;;) {
        const std::uintptr_t count = next(seen / one);
        const std::uintptr_t flag = seen & has_waiters;
        if (count == 0 && flag != 0) return false;
        // sync(gate): publishes to the callers that find it open.
        if (at.compare_exchange(seen, count * one | flag, base::release, base::relaxed))
            return true;
    }
}

template <class Next>
void change(gate_state& g, Next next) noexcept {
    const word at{g.word};
    while (!change_quietly(at, next)) {
        list_guard guard{g.waiters};
        std::uintptr_t seen = at.load(base::relaxed);
        while ((seen & has_waiters) != 0 && next(seen / one) == 0) {
            // sync(gate): sees, for the waiters, what the callers did that brought the count so
            // far; publishes to those that find it open.
            if (!at.compare_exchange(seen, 0, base::acq_rel, base::relaxed)) continue;
            waiter* const all = pop_all(g.waiters);
            guard.unlock();
            return wake_all(all);
        }
    }
}

[[gnu::noinline]] bool wait_slow(gate_state& g, nanoseconds until,
                                 const std::stop_token* stop) noexcept {
    const word at{g.word};
    sched::call_new();
    list_guard guard{g.waiters};
    // sync(gate): sees what happened before it was opened.
    std::uintptr_t seen = at.load(base::acquire);
    do {
        if (seen < one) return true;
        // sync(gate): if it has been opened, sees the same. The flag itself publishes nothing.
    } while (!at.compare_exchange(seen, seen | has_waiters, base::acquire, base::acquire));
    waiter me{sched::this_parkable()};
    push_back(g.waiters, me);
    const sched::wait now{*me.who, sched::wait_kind::gate, &g};
    if (park_on(guard, me, until, stop) == reason::wake) return true;
    // relaxed: nothing is published.
    if (empty(g.waiters)) at.fetch_and(~has_waiters, base::relaxed);
    return false;
}

std::uintptr_t less(std::uintptr_t count, std::ptrdiff_t n, const char* message) noexcept {
    UMS_ASSERT(count >= static_cast<std::uintptr_t>(n), message);
    return count - static_cast<std::uintptr_t>(n);
}

}  // namespace

void gate_calls::add(gate_state& g, std::ptrdiff_t n) noexcept {
    change(g, [n](std::uintptr_t count) {
        if (n < 0) {
            UMS_ASSERT(n != -gate_state::most - 1, "a count would become negative");
            return less(count, -n, "a count would become negative");
        }
        UMS_ASSERT(
            static_cast<std::uintptr_t>(gate_state::most) - count >= static_cast<std::uintptr_t>(n),
            "a count would become too large");
        return count + static_cast<std::uintptr_t>(n);
    });
}

void gate_calls::count_down(gate_state& g, std::ptrdiff_t n) noexcept {
    UMS_ASSERT(n >= 0, "a count down by a negative number");
    change(g,
           [n](std::uintptr_t count) { return less(count, n, "a count would become negative"); });
}

void gate_calls::open(gate_state& g) noexcept {
    // An open gate is written again: a caller that finds it open sees what happened before each of
    // the calls.
    change(g, [](std::uintptr_t) { return std::uintptr_t{0}; });
}

void gate_calls::close(gate_state& g) noexcept {
    change(g, [](std::uintptr_t) { return std::uintptr_t{1}; });
}

bool gate_calls::is_open(const gate_state& g) noexcept {
    // sync(gate): sees what happened before it was opened.
    return word{const_cast<gate_state&>(g).word}.load(base::acquire) < one;
}

void gate_calls::wait(gate_state& g) noexcept {
    if (!is_open(g)) wait_slow(g, os::never, nullptr);
}

bool gate_calls::wait_until(gate_state& g, deadline limit) {
    return is_open(g) || wait_slow(g, os::to_nanoseconds(limit), nullptr);
}

bool gate_calls::wait_or_stop(gate_state& g, const std::stop_token& stop, deadline limit) {
    return is_open(g) || wait_slow(g, os::to_nanoseconds(limit), &stop);
}

}  // namespace ums::impl
