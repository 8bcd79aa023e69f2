// SPDX-License-Identifier: MIT
#pragma once

// ums/options.hpp: what can be chosen about the runtime and about a fiber.
//
// Structs for designated initialisers: ums::options{.processors = 2}. Each runtime option can be
// overridden by an environment variable (in brackets); a value that does not parse ends the program
// with the variable's name and what was expected.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "ums/policy.hpp"

namespace ums {

class cluster;

// How the guard below each stack is made.
enum class guard_kind {
    automatic,    // lightweight where the kernel can, else mprotect
    lightweight,  // MADV_GUARD_INSTALL, Linux 6.13: any number of stacks
    mprotect,     // about 32,700 stacks (vm.max_map_count)
};

enum class policy_kind {
    steal,  // A queue per processor; idle processors take half of another's.
    fifo,   // One queue for all, in strict order of arrival.
};

// What happens when a cluster has nothing to run, and fibers wait for each other in a circle.
enum class deadlock_check {
    off,     // Nothing: nobody looks. find_deadlocks() does, when called.
    report,  // Each cycle is written to standard error, once.
    abort,   // The same, and then the program ends.
};

// How the runtime learns that a fiber has blocked in the kernel by a call that is not marked as blocking, or in
// a page fault.
enum class block_detection {
    automatic,  // monitor where it works, else off
    perf,       // Refused: there is no such detector any more. The others keep their values.
    monitor,    // At once where blocks are frequent, within 10 ms where they are rare.
    off,        // Not at all: only marked calls give their processor up.
};

// What waits for the events of descriptors (ums/io.hpp).
enum class io_engine {
    automatic,  // epoll
    epoll,
    uring,  // io_uring; epoll where the kernel refuses it
};

// What options::time_slice_us is unless the program says otherwise.
inline constexpr std::uint32_t default_time_slice_us = 10'000;

struct options {
    // Processors of the default cluster; 0: one for each CPU this process may use. 1 to 1024.
    // [UMS_PROCESSORS]
    unsigned processors = 0;

    // Usable bytes of a fiber's stack unless it asks for another size: 16 KiB to 1 GiB, rounded up to a
    // power of two. [UMS_STACK_BYTES, with K, M or G]
    std::size_t stack_bytes = 64 * 1024;

    // [UMS_GUARD=auto|lightweight|mprotect]
    guard_kind guard = guard_kind::automatic;

    // The order of the ready fibers in the default cluster. [UMS_POLICY=steal|fifo]
    policy_kind policy = policy_kind::steal;
    // A policy of your own, made anew at each start; wins over the two above.
    std::function<std::unique_ptr<ums::policy>()> make_policy = {};

    // Confine each processor to one CPU. [UMS_PIN=0|1]
    bool pin = false;

    // How long a processor that finds nothing looks on while others run, before it sleeps. 0 to 1 s.
    // [UMS_SPIN_NS]
    std::uint32_t spin_ns = 5'000;

    // Free stacks kept with their memory; more than that many lose it slab by slab.
    // [UMS_WARM_STACKS]
    std::uint32_t warm_stacks = 16'384;

    // Kernel threads of the default cluster, at most: one for each processor, and one for each fiber that is
    // blocked in the kernel (ums/blocking.hpp). At least one more than there are processors, whatever is asked for.
    // 2 to 1,000,000. [UMS_CARRIERS]
    std::uint32_t carriers = 10'000;

    // How long a fiber may run while others wait for its processor, in microseconds; then it is stopped, wherever it
    // is, and goes to the back of the queue (docs/hand-off.md). 0: as long as it likes. At least 100. Needs a detector
    // (`block`) and a clock of the kernel's. Where one of them is missing the default means 0, and any other value is
    // refused: the runtime does not start (std::errc::operation_not_supported). [UMS_TIME_SLICE_US]
    std::uint32_t time_slice_us = default_time_slice_us;

    // The real-time signal by which libums stops a fiber that runs on without a processor, or whose time slice is over;
    // 0: one that nobody uses. [UMS_SIGNAL]
    int signal = 0;

    // Debug: every park and every yield moves the fiber to another processor. [UMS_MIGRATE=0|1]
    bool migrate = false;

    // Measure each ended fiber's stack (a system call or two per fiber), for
    // stats().stack_high_water_bytes. [UMS_MEASURE_STACKS=0|1]
    bool measure_stacks = false;

    // Costs a look at every fiber each time the cluster comes to rest. [UMS_DEADLOCK=off|report|abort]
    deadlock_check deadlock = deadlock_check::off;

    // Debug builds of the library: a warning on standard error when two mutexes are locked in both
    // orders. [UMS_LOCK_ORDER=on|off]
    bool lock_order = true;

    // Use membarrier(2); off costs a full fence per scheduling operation. [UMS_MEMBARRIER=on|off]
    bool membarrier = true;

    // What cannot be had, if it is asked for by name, is refused. [UMS_BLOCK=auto|monitor|off]
    block_detection block = block_detection::automatic;

    // [UMS_IO=auto|epoll|uring]
    io_engine io = io_engine::automatic;

    // Seed of every random choice the scheduler makes. [UMS_SEED]
    std::uint64_t seed = 1;
};

// When a new fiber runs.
enum class launch {
    post,      // It is made ready; its creator goes on.
    dispatch,  // It runs at once; its creator goes on when it stops. From a plain thread, or into
               // another cluster: as post.
};

struct fiber_options {
    // Shown in reports. Copied. At most 256 bytes are kept.
    std::string_view name = {};
    // Usable bytes of its stack, rounded up to a power of two of at least 16 KiB; 0: the runtime's default.
    std::size_t stack_bytes = 0;
    // Runs only on the processor that runs its creator (or, from elsewhere, on the cluster's first).
    bool pinned = false;
    // Null: the creator's cluster; from a plain thread the default cluster.
    ums::cluster* cluster = nullptr;
    ums::launch launch = ums::launch::post;
    // For the cluster's policy, which alone gives it a meaning (fiber_ref::tag).
    std::uint64_t tag = 0;
};

}  // namespace ums
