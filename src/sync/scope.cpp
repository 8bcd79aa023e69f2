// SPDX-License-Identifier: MIT
//
// The children are counted under the list's lock. No wake-up is lost: a joiner looks at the count
// and pushes itself in one section; the child that brings the count to zero pops all joiners in the
// same section. That section is the child's last access to the scope, and a joiner reads the count
// only under the lock, so the scope may be destroyed as soon as join() has returned.
//
// A child leaves in its first registered hook of the last stage, which comes after everything else
// it does: its function, its fiber_local values, what it promised to make ready at its end.

#include "ums/scope.hpp"

#include "sync/wait_list.hpp"

namespace ums {

using namespace sync;

scope::~scope() {
    bool is_left = false;
    {
        const list_guard guard{joiners_};
        is_left = children_ != 0;
    }
    if (is_left) request_stop();
    wait();
}

void scope::enter() noexcept {
    const list_guard guard{joiners_};
    ++children_;
}

void scope::leave() noexcept {
    list_guard guard{joiners_};
    waiter* all = --children_ == 0 ? pop_all(joiners_) : nullptr;
    guard.unlock();
    wake_all(all);
}

void scope::leave_at_exit(child& running) noexcept {
    running.run = [](impl::exit_hook& self) noexcept { delete static_cast<child*>(&self); };
    impl::at_fiber_exit(running, impl::exit_stage::last);
}

void scope::fail(std::exception_ptr thrown) noexcept {
    {
        const list_guard guard{joiners_};
        if (!first_) first_ = std::move(thrown);
    }
    request_stop();
}

void scope::wait() noexcept {
    sched::call_new();
    list_guard guard{joiners_};
    if (children_ == 0) return;
    waiter self{sched::this_parkable()};
    push_back(joiners_, self);
    const sched::wait now{*self.who, sched::wait_kind::scope, this};
    (void)park_on(guard, self);  // Only a wake() ends it.
}

void scope::join() {
    wait();
    std::exception_ptr thrown;
    {
        const list_guard guard{joiners_};
        thrown = std::exchange(first_, nullptr);
    }
    if (thrown) std::rethrow_exception(std::move(thrown));
}

}  // namespace ums
