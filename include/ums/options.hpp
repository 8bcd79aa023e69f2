// SPDX-License-Identifier: MIT
#pragma once

// ums/options.hpp: the choices for the runtime, and for a fiber.
//
// The structs are made for designated initialisers: ums::options{.processors = 2}. An environment
// variable (in brackets) overrides each runtime option that has one. Options are read when the
// runtime starts, or when a fiber is made; changing them later has no effect.
//
// Errors: an option out of range fails the start with std::system_error, invalid_argument; one that
//         this machine cannot satisfy fails it with operation_not_supported. An environment
//         variable that does not parse, or whose name is close to a known one, ends the program
//         with exit code 2 and a line that names it and says what was expected.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/policy.hpp"

namespace ums {

class cluster;

// How the guard below each stack is made.
enum class guard_kind {
    automatic,    // lightweight where the kernel offers it, else mprotect
    lightweight,  // MADV_GUARD_INSTALL, Linux 6.13: any number of stacks
    mprotect,     // about 32,700 stacks (vm.max_map_count)
};

// The built-in policies (docs/policies.md).
enum class policy_kind {
    work_stealing,            // A queue per processor; idle processors take half of another's.
    global_fifo,              // One queue for all, in order of arrival.
    local_locked,             // A locked queue per processor; each fiber has its processor.
    local_mpsc,               // The same with an array that is filled without a lock.
    local_mpsc_intrusive,     // The same with a list.
    priority,                 // The most urgent first (fiber_options::priority).
    earliest_deadline_first,  // fiber_options::deadline.
    fair_share,               // Running time by weight (fiber_options::weight and group).
};

// The name of a policy, as UMS_POLICY has it.
[[nodiscard]] UMS_EXPORT std::string_view name_of(policy_kind kind) noexcept;
// The policy of that name; empty if there is none.
[[nodiscard]] UMS_EXPORT std::optional<policy_kind> policy_named(std::string_view name) noexcept;
// Makes a built-in policy as an object, for a policy of your own that wraps it. Null for
// work_stealing, which is the scheduler itself.
[[nodiscard]] UMS_EXPORT std::unique_ptr<policy> make_policy(policy_kind kind);

// What the runtime does when fibers wait that nothing will wake: all of them wait for each other,
// and no deadline, descriptor, blocked call or other kernel thread is left; or some wait for each
// other's mutexes in a circle.
enum class deadlock_check {
    off,     // Does not look. find_deadlocks() still does, when called.
    report,  // Writes who waits for what to standard error, once. The program goes on waiting.
    abort,   // Writes it, then ends the program by SIGABRT.
    exit,    // Writes it, then ends the program with exit status 2, at once.
};

// How the runtime learns that a fiber has blocked in the kernel in a call that is not marked as
// blocking, or in a page fault.
enum class block_detection {
    automatic,  // monitor where it works, else off
    monitor,    // Learns at once where blocks are frequent, within 10 ms where they are rare.
    off,        // Does not learn: only marked calls give their processor up.
};

// The default of options::time_slice_us.
inline constexpr std::uint32_t default_time_slice_us = 10'000;

struct options {
    // Processors of the default cluster, 1 to 1024. 0: one for each CPU this process may use, at
    // most as many as its control group's quota is worth. [UMS_PROCESSORS]
    unsigned processors = 0;

    // Usable bytes of a fiber's stack unless the fiber asks for another size: 16 KiB to 1 GiB,
    // rounded up to a power of two. [UMS_STACK_BYTES, with K, M or G]
    std::size_t stack_bytes = 256 * 1024;

    // How stacks are guarded. Asking for `lightweight` where the kernel lacks it is refused.
    // [UMS_DEBUG=guard=auto|lightweight|mprotect]
    guard_kind guard = guard_kind::automatic;

    // The order of the ready fibers in the default cluster. [UMS_POLICY=work_stealing|...]
    policy_kind policy = policy_kind::work_stealing;
    // Makes a policy of your own, anew at each start; wins over `policy`. UMS_POLICY, if it is set,
    // wins over both.
    std::function<std::unique_ptr<ums::policy>()> make_policy = {};

    // Lets the default cluster have more or fewer processors when the process's affinity mask,
    // cpuset or control group's quota changes while fibers run: a kernel thread looks once a second
    // then. Never more than `processors`, unless that is 0, nor than `cpus` names. Needs a detector
    // (`block`): refused without one. [UMS_FOLLOW_CPUS=0|1]
    bool follow_cpus = false;

    // Confines each processor to one CPU, of those that `cpus` names. [UMS_PIN=0|1]
    bool pin = false;

    // The CPUs that the default cluster's kernel threads may use, as cluster_options::cpus. With
    // `processors` 0 there is a processor for each of them. [UMS_CPUS=LIST|node:NUMBER|auto]
    std::string cpus = {};

    // How long a processor that finds no work spins for it while others run, before it sleeps, in
    // nanoseconds. At most 1 s. [UMS_SPIN_NS]
    std::uint32_t spin_ns = 5'000;

    // How many free stacks keep their memory; stacks beyond that lose it slab by slab.
    // [UMS_WARM_STACKS]
    std::uint32_t warm_stacks = 16'384;

    // Most kernel threads of the default cluster: one for each processor, and one for each fiber
    // that is blocked in the kernel (ums/blocking.hpp). 2 to 1,000,000, but in any case at least
    // one more than there are processors. [UMS_CARRIERS]
    std::uint32_t carriers = 10'000;

    // How long a fiber may run while others wait for its processor, in microseconds: 100 to
    // 60,000,000. Then the runtime stops it, wherever it is, and puts it at the back of the queue
    // (docs/hand-off.md). 0: as long as it likes. Needs a detector (`block`) and a clock of the
    // kernel's. Where one of them is missing, any other value than the default is refused: the
    // runtime does not start (std::errc::operation_not_supported). Without a detector the default
    // means 0; without a clock, the processor leaves the fiber, late, and nothing stops it.
    // [UMS_TIME_SLICE_US]
    std::uint32_t time_slice_us = default_time_slice_us;

    // The real-time signal by which libums stops a fiber that runs on without a processor, or whose
    // time slice is over. 0: one that nobody uses; if none is left, fibers are not stopped.
    // [UMS_SIGNAL]
    int signal = 0;

    // Debug: moves the fiber to another processor at every park and every yield.
    // [UMS_DEBUG=migrate]
    bool migrate = false;

    // Measures the stack of each fiber that ends (a system call or two per fiber), for
    // stats().stack_high_water_bytes. [UMS_DEBUG=measure_stacks]
    bool measure_stacks = false;

    // Whether the runtime says so when fibers wait for ever (ums/deadlock.hpp). Cost: none while
    // anything runs; a look at every fiber when a cluster has had nothing to run and no deadline
    // for 0.25 s, and two looks more at the most, then nothing.
    // [UMS_DEBUG=deadlock=report|abort|exit|off]
    deadlock_check deadlock = deadlock_check::report;

    // Uses membarrier(2); without it each scheduling operation costs a full fence.
    // [UMS_DEBUG=membarrier=on|off]
    bool membarrier = true;

    // An unavailable detector that was requested by name fails the start.
    // [UMS_BLOCK=auto|monitor|off]
    block_detection block = block_detection::automatic;

    // Seed of every random choice the scheduler makes. [UMS_DEBUG=seed=NUMBER]
    std::uint64_t seed = 1;
};

// When a new fiber runs.
enum class launch {
    post,      // The fiber becomes ready; its creator continues.
    dispatch,  // The fiber runs at once; its creator continues when it stops. From a plain thread,
               // or into another cluster, this means post.
};

struct fiber_options {
    // Shown in reports. The runtime copies it and keeps at most 256 bytes.
    std::string_view name = {};
    // Usable bytes of its stack, rounded up to a power of two of at least 16 KiB; at most 1 GiB. 0:
    // the runtime's default.
    std::size_t stack_bytes = 0;
    // Runs only on its creator's processor or, if the creator is a plain thread or belongs to
    // another cluster, on the first processor of the fiber's cluster.
    bool pinned = false;
    // Null means the creator's cluster; for a plain thread the default cluster.
    ums::cluster* cluster = nullptr;
    ums::launch launch = ums::launch::post;
    // A word for the cluster's policy, which alone gives it a meaning (fiber_ref::tag).
    std::uint64_t tag = 0;

    // What some built-in policies go by; the others heed none of it. A value out of range is
    // refused with std::system_error, invalid_argument. fiber_ref has setters.
    // For priority: -4 to 3, the most urgent.
    int priority = 0;
    // For earliest_deadline_first: when the fiber should have done what it does next. max(): none.
    ums::deadline deadline = (ums::deadline::max)();
    // For fair_share: its weight within its group, 1 to 10,000. Twice the weight, twice the time.
    unsigned weight = usual_weight;
    // For fair_share: 0 to 63. Groups share the processors by cluster::set_group_weight().
    unsigned group = 0;
};

}  // namespace ums
