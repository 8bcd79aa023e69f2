// SPDX-License-Identifier: MIT
//
// sync/child_count.hpp counts the children and says why no wake-up is lost. The child that comes
// to the lock pops all joiners there; that section is its last access to the scope. The others'
// last access is the step that counts their end. A joiner that waited is in the list until it is
// popped, and one that did not has seen that nobody is on the way to the lock. So the scope may be
// destroyed as soon as join() has returned.
//
// A child leaves in a hook of the last stage that is registered before it begins. So it comes
// after everything else the child does: its function, its fiber_local values, what it promised to
// make ready at its end. The hook lies on the child's stack, right below the descriptor; nobody
// looks at it but the child.

#include "ums/scope.hpp"

#include "sched/run/here.hpp"
#include "sync/child_count.hpp"
#include "sync/wait_list.hpp"

namespace ums {

using namespace sync;

namespace {

using word = base::atomic_ref<std::uint64_t>;

child_counter<word> children(impl::child_count& c) noexcept {
    return {word{c.word}, word{c.begun}, word{c.told}};
}

}  // namespace

scope::~scope() {
    if (children(count_).is_done()) [[likely]]
        return;
    bool is_left = false;
    {
        const list_guard guard{joiners_};
        is_left = children(count_).is_left();
    }
    if (is_left) request_stop();
    wait();
}

const void* scope::this_fiber() noexcept { return sched::here{}.self; }

void scope::begin(sched::fiber* f, void (*function)(void*), void* callable, launch when) noexcept {
    if (owner_ != nullptr && owner_ == sched::here{}.self) [[likely]]
        children(count_).begin_own();
    else
        children(count_).begin();
    auto& hook = impl::kept<child>(f);
    hook.run = &leave;
    f->belongings.last_stage = &hook;
    impl::spawn_detached(f, function, callable, when);
}

void scope::leave(impl::exit_hook& ended) noexcept {
    scope& s = static_cast<child&>(ended).owner;
    if (!children(s.count_).end()) [[likely]]
        return;
    list_guard guard{s.joiners_};
    waiter* const all = children(s.count_).next_of_waking() ? pop_all(s.joiners_) : nullptr;
    guard.unlock();
    wake_all(all);
}

void scope::fail(std::exception_ptr thrown) noexcept {
    {
        const list_guard guard{joiners_};
        if (!first_) {
            first_ = std::move(thrown);
            children(count_).set_failed();
        }
    }
    request_stop();
}

void scope::wait() noexcept {
    sched::call_new();
    list_guard guard{joiners_};
    if (!children(count_).await()) return;
    waiter self{sched::this_parkable()};
    push_back(joiners_, self);
    const sched::wait now{*self.who, sched::wait_kind::scope, this};
    (void)park_on(guard, self);  // Only a wake() ends it.
}

void scope::join() {
    if (children(count_).is_done()) [[likely]]
        return;
    wait();
    std::exception_ptr thrown;
    {
        const list_guard guard{joiners_};
        if (!first_) return;
        thrown = std::exchange(first_, nullptr);
        children(count_).clear_failed();
    }
    std::rethrow_exception(std::move(thrown));
}

bool scope::request_stop() noexcept {
    std::stop_source stop{std::nostopstate};
    {
        const list_guard guard{joiners_};
        if (!stop_.stop_possible()) return !std::exchange(is_stop_requested_, true);
        stop = stop_;
    }
    // Outside, because it calls the program's callbacks.
    return stop.request_stop();
}

std::stop_source scope::get_stop_source() const {
    {
        const list_guard guard{joiners_};
        if (stop_.stop_possible()) return stop_;
    }
    std::stop_source made;
    const list_guard guard{joiners_};
    if (!stop_.stop_possible()) {
        if (is_stop_requested_) made.request_stop();  // It has no callbacks.
        stop_.swap(made);
    }
    return stop_;
}

}  // namespace ums
