// SPDX-License-Identifier: MIT
#include "sched/fiber/exit_hooks.hpp"

#include <cxxabi.h>

#include "base/assert.hpp"
#include "sched/run/park.hpp"

// The object that a destructor at a thread's end belongs to; it is not unloaded before that.
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

namespace ums::sched {

namespace {

struct thread_belongings : belongings {
    bool is_registered = false;
};

// A plain thread's belongings. Only noinline code takes the address, on threads that never change.
// It has no destructor, so it is still valid if another thread_local's destructor needs it.
thread_local constinit thread_belongings of_thread;

void end_thread(void* of) noexcept {
    auto& ending = *static_cast<thread_belongings*>(of);
    // A hook that comes later, in another destructor, registers again.
    ending.is_registered = false;
    run_hooks(ending);
}

[[gnu::noinline]] belongings& of_this_thread() noexcept { return of_thread; }

[[gnu::noinline]] void run_at_thread_end() noexcept {
    if (of_thread.is_registered) return;
    of_thread.is_registered = true;
    const int failed =
        abi::__cxa_thread_atexit([](void* of) { end_thread(of); }, &of_thread, &__dso_handle);
    UMS_ASSERT(failed == 0, "no memory for what a thread does last");
}

fiber* this_fiber_or_null() noexcept { return here{}.self; }

}  // namespace

belongings& this_belongings() noexcept {
    fiber* f = this_fiber_or_null();
    return f != nullptr ? f->belongings : of_this_thread();
}

void run_hooks(belongings& of) noexcept {
    for (;;) {
        impl::exit_hook* hook = of.first_stage;
        if (hook != nullptr) {
            of.first_stage = hook->next;
        } else {
            hook = of.last_stage;
            if (hook == nullptr) return;
            of.last_stage = hook->next;
        }
        hook->run(*hook);
    }
}

}  // namespace ums::sched

namespace ums::impl {

void at_fiber_exit(exit_hook& hook, exit_stage stage) noexcept {
    if (sched::this_fiber_or_null() == nullptr) sched::run_at_thread_end();
    sched::belongings& own = sched::this_belongings();
    exit_hook*& list = stage == exit_stage::first ? own.first_stage : own.last_stage;
    hook.next = list;
    list = &hook;
}

}  // namespace ums::impl
