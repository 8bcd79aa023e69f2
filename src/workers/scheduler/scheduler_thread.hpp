// SPDX-License-Identifier: MIT
#pragma once

// workers/scheduler/scheduler_thread.hpp: a thread that executes workers.
//
// Its stack holds enter(), then land(), and below that the procedure. Whatever gives the kernel
// thread back (a yield, a blocking call, an end) first writes the reason into this struct, then
// switches to the landing: the procedure's old frames are gone, and activate() calls it anew.

#include <optional>

#include "ums/ums_scheduling.h"
#include "workers/left/watch.hpp"
#include "workers/scheduler/landing.hpp"
#include "workers/scheduler/seat.hpp"
#include "workers/worker/completion_list.hpp"
#include "workers/worker/context.hpp"

namespace ums::scheduling {

// Why control is back on the scheduler's stack. The procedure is told the first three.
enum class arrival_reason : unsigned char {
    startup = UMS_REASON_STARTUP,
    blocked = UMS_REASON_BLOCKED,
    yield = UMS_REASON_YIELD,
    leave,  // The procedure wants to be done.
    lost,   // The worker was found blocked and stays where it is: see workers/scheduler/seat.hpp.
};

struct scheduler_thread {
    landing base;
    void* pointer;  // Thread pointer.
    context* running = nullptr;
    arrival_reason reason = arrival_reason::startup;
    void* argument = nullptr;
    context* last = nullptr;      // The worker that was executed last.
    context* expected = nullptr;  // The worker that was executed after it the last time.

    // Set once in enter():
    // Both are relative to any thread pointer.
    std::ptrdiff_t current_offset = 0, errno_offset = 0;
    context* self = nullptr;
    ums_scheduler_procedure_t procedure = nullptr;
    void* parameter = nullptr;
    completion_list* list = nullptr;
    handle list_handle = 0;

    // Where the scheduler runs. `mask` is kept here while nothing of it runs on a kernel thread.
    scheduling::seat own_seat;
    scheduling::seat* seat = &own_seat;
    std::uint64_t mask = 0;
    std::uintptr_t payload = 0;  // What the procedure is told about a loss.
    unsigned rseq_bytes = 0;
    std::optional<seat_watch> watch;

    std::uint64_t left_at = 0;  // When a worker came back, while times were measured.
};

// Bookkeeping: the worker no longer runs.
void worker_left(scheduler_thread& s, context& w) noexcept;

int enter(const ums_scheduler_options_t& options);
int execute(handle h) noexcept;
int leave_procedure() noexcept;

void measure(bool on) noexcept;

}  // namespace ums::scheduling
