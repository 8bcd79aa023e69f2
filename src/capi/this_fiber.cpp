// SPDX-License-Identifier: MIT
#include "ums/this_fiber.hpp"
#include "ums/last_error.hpp"

#include "capi/call.hpp"
#include "os/clock.hpp"
#include "sched/run/here.hpp"
#include "ums/cluster.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

int may_migrate(cluster& to) noexcept {
    const sched::here at;
    if (at.self == nullptr) return -EPERM;
    const bool leaves = at.self->home_cluster.get() != sched::cluster_access::of(to);
    return leaves && at.on->is_kept.get() ? -EBUSY : 0;
}

}  // namespace

int64_t ums_now() { return os::now(); }

int64_t ums_deadline_after(int64_t ns) {
    const os::nanoseconds now = os::now();
    if (ns <= 0) return now;
    return ns < UMS_NEVER - now ? now + ns : UMS_NEVER;
}

void ums_this_fiber_yield() { this_fiber::yield(); }
bool ums_this_fiber_tryyield() { return this_fiber::try_yield(); }
uint64_t ums_this_fiber_id() { return this_fiber::get_id().value(); }
const char* ums_this_fiber_name() { return ums_ref_name(ums_this_fiber_ref()); }
ums_ref_t ums_this_fiber_ref() { return to_c(this_fiber::ref()); }

void ums_this_fiber_park() { this_fiber::park(); }

int ums_this_fiber_park_until(int64_t deadline, ums_stop_t* stop) {
    const wake_reason why =
        stop == nullptr ? this_fiber::park_until(to_deadline(deadline))
                        : this_fiber::park_until(to_deadline(deadline), stop->source.get_token());
    return why == wake_reason::unparked ? 0 : why == wake_reason::stopped ? -ECANCELED : -ETIMEDOUT;
}

void ums_this_fiber_sleep_ns(int64_t ns) {
    if (ns > 0) this_fiber::sleep_until(to_deadline(ums_deadline_after(ns)));
}
void ums_this_fiber_sleep_until(int64_t deadline) {
    this_fiber::sleep_until(to_deadline(deadline));
}

int ums_this_fiber_migrate(ums_cluster_t* to) {
    cluster& target = *reinterpret_cast<cluster*>(to);
    if (const int error = may_migrate(target)) return error;
    this_fiber::migrate(target);
    return 0;
}

int ums_this_fiber_migrate_to(ums_cluster_t* to, unsigned processor) {
    cluster& target = *reinterpret_cast<cluster*>(to);
    if (const int error = may_migrate(target)) return error;
    return call([&] { this_fiber::migrate(target, processor); });
}

size_t ums_this_fiber_stack_high_water_bytes() { return this_fiber::stack_high_water_bytes(); }

int ums_last_error() { return last_error(); }
void ums_set_last_error(int number) { set_last_error(number); }
