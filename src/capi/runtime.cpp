// SPDX-License-Identifier: MIT
#include <memory>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "capi/call.hpp"
#include "capi/policy.hpp"
#include "capi/started.hpp"
#include "runtime/runtime.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

// The runtime that ums_runtime_start() made.
constinit base::atomic<runtime*> started;

int to_options(const ums_options_t* given, options& out) noexcept {
    ums_options_t o = UMS_OPTIONS_INIT;
    if (const int error = copy_sized(o, given, sizeof o); error != 0) return error;
    if (const int error = check_policy(o.policy_calls, o.policy); error != 0) return error;
    if (!is_kind(o.guard, UMS_GUARD_MPROTECT) || !is_kind(o.block, UMS_BLOCK_OFF)) return -EINVAL;
    if (o.block == UMS_BLOCK_PERF) return -EOPNOTSUPP;
    return call([&] {
        out.processors = o.processors;
        out.stack_bytes = o.stack_bytes;
        out.guard = o.guard == UMS_GUARD_LIGHTWEIGHT ? guard_kind::lightweight
                    : o.guard == UMS_GUARD_MPROTECT  ? guard_kind::mprotect
                                                     : guard_kind::automatic;
        out.policy = to_kind(o.policy);
        out.make_policy = policy_maker(o.policy_calls, o.policy_argument);
        out.pin = o.pin;
        out.spin_ns = o.spin_ns;
        out.warm_stacks = o.warm_stacks;
        out.migrate = o.migrate;
        out.measure_stacks = o.measure_stacks;
        out.membarrier = o.membarrier;
        out.seed = o.seed;
        out.block = o.block == UMS_BLOCK_MONITOR ? block_detection::monitor
                    : o.block == UMS_BLOCK_OFF   ? block_detection::off
                                                 : block_detection::automatic;
        out.carriers = o.carriers;
        out.time_slice_us = o.time_slice_us;
        out.signal = o.signal;
        out.cpus = o.cpus != nullptr ? o.cpus : "";
    });
}

}  // namespace

bool ums::capi::drain_started() noexcept {
    // sync(c-runtime): sees the start. Kept, because this runtime is never stopped: its carriers
    // end with the process.
    static const runtime* const drained = started.exchange(nullptr, base::acq_rel);
    if (drained == nullptr) return false;
    rt::current()->standard->drain();
    return true;
}

int ums_run(const ums_options_t* given, void (*function)(void*), void* argument) {
    return call([&] {
        options chosen;
        if (const int error = to_options(given, chosen); error != 0) return error;
        const runtime running{chosen};
        fiber main_fiber{fiber_options{.name = "main"}, function, argument};
        main_fiber.join();
        return 0;
    });
}

int ums_runtime_start(const ums_options_t* given) {
    return call([&] {
        options chosen;
        if (const int error = to_options(given, chosen); error != 0) return error;
        // sync(c-runtime): publishes the runtime to the thread that stops it.
        [[maybe_unused]] runtime* const before =
            started.exchange(new runtime{chosen}, base::acq_rel);
        UMS_DEBUG_ASSERT(before == nullptr, "two runtimes were started at a time");
        return 0;
    });
}

int ums_runtime_stop() {
    if (this_fiber::get_id() != fiber_id{}) return -EPERM;
    // sync(c-runtime): sees the start.
    const std::unique_ptr<runtime> stopped{started.exchange(nullptr, base::acq_rel)};
    return stopped != nullptr ? 0 : -EINVAL;
}
