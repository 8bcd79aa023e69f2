// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/fiber_record.hpp: a fiber, as it was found.

#include <cstdint>
#include <string>

#include "memory.hpp"

namespace tool::inspect {

inline constexpr std::uint32_t nobody = ~std::uint32_t{0};

enum class fiber_state : unsigned char {
    running,  // On a kernel thread that is not known to wait.
    blocked,  // In the kernel.
    stopped,  // Stopped by the signal; waits for its turn together with its kernel thread.
    ready,    // In a queue.
    parked,   // Waits for something of the library.
    ended,    // Its function has returned, and no other fiber has joined it yet.
};
[[nodiscard]] const char* name_of(fiber_state s);

// The values of src/sched/fiber/wait_record.hpp, and the waits that leave no mark.
enum class wait : unsigned char {
    none,
    mutex,
    shared_mutex,
    shared_mutex_shared,
    semaphore,
    condition,
    send,
    receive,
    select,
    gate,
    barrier,
    once,
    scope,
    future,
    readable,
    writable,
    offload,
    resolve,
    shortage,
    permit,
    last_mark = permit,
    join,
    park,  // this_fiber::park()
    sleep,
    library,  // Something inside the library.
    system_call,
    page_fault,
};
// A word for lists and filters: "mutex", "receive", "descriptor".
[[nodiscard]] const char* name_of(wait w);

struct fiber_record {
    address at = 0;  // The descriptor.
    std::uint64_t id = 0;
    std::string name;
    address run = 0;       // The code that calls its function.
    address callable = 0;  // Its function, with the arguments.
    std::uint64_t spawner = 0;
    address spawned_at = 0;  // Where the code that made it continued.
    address cluster = 0;
    address pinned_to = 0;
    address stack_begin = 0, stack_end = 0;
    address sp = 0, ip = 0, bp = 0;  // Where it continues. For a running fiber: nothing.
    std::uint64_t mark = 0;
    address joiner = 0;
    std::uint32_t word = 0;

    fiber_state state = fiber_state::ready;
    bool has_moved = false;          // It ran while it was read.
    bool is_handed_off = false;      // Its processor has gone to another kernel thread.
    std::uint32_t carrier = nobody;  // Index in snapshot::carriers.
    // Index as above; the processor that it runs or is queued on.
    std::uint32_t processor = nobody;

    wait waits = wait::none;
    std::uint64_t waits_in = 0;  // The object, the descriptor, or the number of the call.
    // The fiber that holds that, or is joined: index in snapshot::fibers.
    std::uint32_t waits_by = nobody;
    std::uint64_t detail = 0;  // Depends on the kind: readers, a count, how many are in a channel.
    std::uint64_t capacity = 0;      // The capacity of a channel.
    bool is_held_by_thread = false;  // A plain thread holds it.
    address holder = 0;              // The address that stands for that thread.
    std::int64_t deadline = 0;       // CLOCK_MONOTONIC, ns; 0: none.
    std::uint64_t stack_used = 0;    // 0: not known.
    // By the rings of a trace (trace/fiber_times.hpp), in ns; -1: not known. For how long it has
    // been in its state, and how long it was on processors.
    std::int64_t since_ns = -1, cpu_ns = -1;
};

}  // namespace tool::inspect
