// SPDX-License-Identifier: MIT
//
// The word of a shared state has these flags:
//
//   claimed    a provider stores the outcome, or has stored it.
//   ready      the outcome is there and does not change any more. Set under the list's lock.
//   retrieved  the promise has given its future away.
//   deferred   the outcome will be that of a function that no caller has begun to call yet.
//
// No wake-up is lost: `ready` is set, and all waiters are popped, in one section of the list's
// lock; a waiter looks and pushes itself in one section (sync/wait_list.hpp). A caller that finds
// `ready` without the lock does not wait.
//
// After a provider has made the state ready, it still unlocks the list and wakes the popped
// waiters, while a waiter that found it ready drops its reference. So a provider holds a reference
// of its own until it has returned. It wakes the popped waiters without using the state. A fiber
// that the state's destructor joins is kept safe by that join instead: the fiber's own reference
// might be the last, and it would join itself.

#include "ums/impl/shared_state.hpp"

#include "sync/wait_list.hpp"
#include "ums/this_fiber.hpp"

namespace ums::impl {

namespace {

using namespace sync;
using word = base::atomic_ref<std::uint32_t>;

constexpr std::uint32_t claimed = 1, ready = 2, retrieved = 4, deferred = 8;

std::uint32_t look(const std::uint32_t& at) noexcept {
    // sync(future): sees the outcome.
    return word{const_cast<std::uint32_t&>(at)}.load(base::acquire);
}

bool wait_for_ready(wait_list& waiters, const std::uint32_t& at, nanoseconds until,
                    const std::stop_token* stop) noexcept {
    if ((look(at) & ready) != 0) return true;
    if (until != os::never && until <= os::now()) {
        // Asking is not waiting, but a caller that asks in a loop must let other fibers run, or the
        // state may never become ready.
        this_fiber::yield();
        return (look(at) & ready) != 0;
    }
    sched::call_new();
    list_guard guard{waiters};
    if ((look(at) & ready) != 0) return true;
    waiter self{sched::this_parkable()};
    push_back(waiters, self);
    const sched::wait now{*self.who, sched::wait_kind::future, &at};
    return park_on(guard, self, until, stop) == reason::wake;
}

}  // namespace

void throw_future_error(std::future_errc code) { throw std::future_error{code}; }

shared_state::~shared_state() = default;
void shared_state::run_deferred() {}
void shared_state::dispose() noexcept { delete this; }

// relaxed: a caller that adds a reference holds one.
void shared_state::add_reference() noexcept { word{references_}.fetch_add(1, base::relaxed); }

void shared_state::drop_reference() noexcept {
    // sync(future.references): what each holder did with the state happens before the state's end.
    if (word{references_}.fetch_sub(1, base::acq_rel) == 1) dispose();
}

void shared_state::claim() {
    // sync(future): sees what a claimant that failed left behind.
    if ((word{word_}.fetch_or(claimed, base::acquire) & claimed) != 0)
        throw_future_error(std::future_errc::promise_already_satisfied);
}

// sync(future): publishes what is left to the next claimant.
void shared_state::unclaim() noexcept { word{word_}.fetch_and(~claimed, base::release); }

void shared_state::set_broken() noexcept {
    set_error(std::make_exception_ptr(std::future_error{std::future_errc::broken_promise}));
}

void shared_state::make_ready() noexcept {
    list_guard guard{waiters_};
    // sync(future): publishes the outcome.
    word{word_}.fetch_or(ready, base::release);
    waiter* all = pop_all(waiters_);
    guard.unlock();
    wake_all(all);
}

void shared_state::make_ready_at_exit() noexcept {
    if (!is_joined_) add_reference();
    at_exit_.state = this;
    at_exit_.run = &run_exit_hook;
    at_fiber_exit(at_exit_, exit_stage::last);
}

void shared_state::run_exit_hook(exit_hook& self) noexcept {
    shared_state& state = *static_cast<ready_hook&>(self).state;
    const bool holds_reference = !state.is_joined_;
    state.make_ready();
    if (holds_reference) state.drop_reference();
}

void shared_state::abandon() noexcept {
    // relaxed: if the caller's is the only reference, there is no waiter to tell, and nothing can
    // make another.
    if (word{references_}.load(base::relaxed) == 1) return;
    // sync(future): as in claim().
    if ((word{word_}.fetch_or(claimed, base::acquire) & claimed) != 0) return;
    set_broken();
    make_ready();
}

void shared_state::retrieve() {
    // relaxed: nothing is published.
    if ((word{word_}.fetch_or(retrieved, base::relaxed) & retrieved) != 0)
        throw_future_error(std::future_errc::future_already_retrieved);
}

bool shared_state::is_ready() const noexcept { return (look(word_) & ready) != 0; }
bool shared_state::is_deferred() const noexcept { return (look(word_) & deferred) != 0; }
void shared_state::defer() noexcept { word_ |= deferred; }

void shared_state::wait() {
    // relaxed: the function was stored before the state was shared.
    if (is_deferred() && (word{word_}.fetch_and(~deferred, base::relaxed) & deferred) != 0) {
        struct finish {
            shared_state& state;
            ~finish() { state.make_ready(); }
        } also_when_the_thread_ends{*this};
        run_deferred();
        return;
    }
    wait_for_ready(waiters_, word_, os::never, nullptr);
}

bool shared_state::wait_until(deadline limit) {
    return wait_for_ready(waiters_, word_, os::to_nanoseconds(limit), nullptr);
}

bool shared_state::wait_or_stop(const std::stop_token& stop, deadline limit) {
    return wait_for_ready(waiters_, word_, os::to_nanoseconds(limit), &stop);
}

}  // namespace ums::impl
