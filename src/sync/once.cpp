// SPDX-License-Identifier: MIT
//
// The word is one of: idle (zero), running, running with has_waiters, or done, which is final.
//
//   has_waiters  the list is not empty. Changes only under the list's lock, together with the list.
//
// No waiter is forgotten: a waiter sets the flag, by a compare-and-swap that finds the call
// running, and pushes itself in one section; the end of the call finds the flag, and then, under
// the lock, the waiters. A call that threw hands the turn to the first of them, and the word says
// "running" all the time, so a caller that comes meanwhile queues behind.
//
// A caller that sees "done" may destroy the object: the last access of the call's end is its
// compare-and-swap if there are no waiters; otherwise it is its unlock, and until then the waiters
// that it has popped and not woken keep the object alive.

#include "ums/once.hpp"

#include "sync/wait_list.hpp"

namespace ums::impl {

namespace {

using namespace sync;
using word = base::atomic_ref<std::uint32_t>;

constexpr std::uint32_t idle = 0, running = 1, has_waiters = 2, done = once_state::done;

struct once_waiter : waiter {
    using waiter::waiter;
    bool has_turn = false;  // Guarded by the list's lock: this waiter is to make the call.
};

[[gnu::noinline]] void end_with_waiters(once_state& o, bool is_done) noexcept {
    list_guard guard{o.waiters};
    if (is_done) {
        waiter* const all = pop_all(o.waiters);
        // sync(once): publishes the call.
        word{o.word}.store(done, base::release);
        guard.unlock();
        return wake_all(all);
    }
    auto* next = static_cast<once_waiter*>(pop(o.waiters));
    next->has_turn = true;
    // relaxed: a call that threw publishes only through the wake-up.
    if (empty(o.waiters)) word{o.word}.store(running, base::relaxed);
    guard.unlock();
    sched::wake(*next->who);
}

}  // namespace

bool once_calls::begin(once_state& o) noexcept {
    const word at{o.word};
    std::uint32_t seen = idle;
    // sync(once): a call that threw may have left something behind for the next one.
    if (at.compare_exchange(seen, running, base::acquire, base::acquire)) return true;
    list_guard guard{o.waiters};
    for (;;) {
        if (seen == done) return false;
        if (seen == idle) {
            // sync(once): as above.
            if (at.compare_exchange(seen, running, base::acquire, base::acquire)) return true;
        } else {
            // sync(once): if the call is done, sees what it did. The flag itself publishes nothing.
            if (at.compare_exchange(seen, running | has_waiters, base::acquire, base::acquire))
                break;
        }
    }
    once_waiter me{sched::this_parkable()};
    push_back(o.waiters, me);
    const sched::wait now{*me.who, sched::wait_kind::once, &o};
    (void)park_on(guard, me);
    return me.has_turn;
}

void once_calls::end(once_state& o, bool is_done) noexcept {
    std::uint32_t seen = running;
    // sync(once): publishes the call, or what a call that threw left behind.
    if (word{o.word}.compare_exchange(seen, is_done ? done : idle, base::release, base::relaxed))
        return;
    end_with_waiters(o, is_done);
}

}  // namespace ums::impl
