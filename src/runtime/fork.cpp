// SPDX-License-Identifier: MIT
#include "runtime/fork.hpp"

#include <exception>
#include <memory>
#include <new>
#include <pthread.h>

#include "io/engine/engine.hpp"
#include "os/lock.hpp"
#include "os/say.hpp"
#include "os/thread/at_rest.hpp"
#include "os/thread_slot.hpp"
#include "runtime/runtime.hpp"
#include "runtime/standstill.hpp"
#include "sched/block/keep.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/life/end.hpp"
#include "sched/life/plain_join.hpp"
#include "sched/lock/bias.hpp"
#include "sched/lock/urgency.hpp"
#include "sched/queue/depot.hpp"
#include "sched/record/trace.hpp"
#include "sched/run/here.hpp"
#include "sched/run/unused_pages.hpp"
#include "sync/local_keys.hpp"

namespace ums::rt {

namespace {

bool is_on_fiber() noexcept { return sched::here{}.self != nullptr; }

// In the order of their ranks.
void hold_what_is_shared() noexcept {
    sched::depot().begin_fork();
    sched::urgency::begin_fork();
}

void let_go_what_is_shared() noexcept {
    sched::urgency::end_fork();
    sched::depot().end_fork();
}

void before() noexcept {
    if (is_on_fiber()) hold_what_is_shared();
}

void in_parent() noexcept {
    if (is_on_fiber()) let_go_what_is_shared();
}

// What is not a runtime's own. Before a cluster is made.
void leave_rest_behind() {
    os::lock_states::leave_behind();
    sched::cluster::leave_all_behind();
    sched::bias::leave_behind();
    sched::plain_joins.leave_behind();
    sched::leave_thread_waits_behind();
    sched::leave_trace_behind();
    watch_for_standstill(deadlock_check::off);
    os::at_rest::leave_behind();
    sync::leave_local_keys_behind();
    carry::maker::leave_behind();
    io::leave_behind();
    sched::unused_pages::begin(sched::measure_stacks);
}

void go_on(sched::fiber& self) {
    leave_rest_behind();
    auto made = std::make_unique<running_runtime>();
    made->parents = current();
    made->set = made->parents->set;
    made->watch.emplace(carrier_watch::after_fork{}, *made->parents->watch);
    options& o = made->set.chosen;
    o.processors = 1;
    o.time_slice_us = 0;
    o.follow_cpus = false;
    made->set.processors_reason = "in the child of a fork()";
    make_standard(*made);
    if (!made->standard->adopt(self)) throw std::bad_alloc{};
    replace(made.release());
    sched::keep::begin_again(self);
}

void say_without_runtime(const char* why) noexcept {
    os::set_thread_slot(nullptr);
    os::say(
        "the child of a fork() has no runtime (%s): it can execute another program, or end by "
        "_exit()",
        why);
}

void in_child() noexcept {
    const sched::here at;
    // The child of a plain thread may close descriptors, though it has no runtime.
    if (at.self == nullptr) return io::leave_engine_behind();
    let_go_what_is_shared();
    try {
        return go_on(*at.self);
    } catch (const std::exception& e) {
        say_without_runtime(e.what());
    } catch (...) {  // From the program's own make_policy.
        say_without_runtime("an exception of another type");
    }
}

}  // namespace

void handle_forks() noexcept {
    static constinit bool are_handled = false;
    if (are_handled) return;
    are_handled = pthread_atfork(&before, &in_parent, &in_child) == 0;
}

namespace {

[[gnu::constructor(101)]] void handle_forks_from_now_on() { handle_forks(); }

}  // namespace

}  // namespace ums::rt
