// SPDX-License-Identifier: MIT
#pragma once

// ums/scheduler_thread.hpp: a thread that executes workers.
//
// Its stack holds enter(), then land(), and below that the procedure. Whatever gives the kernel thread back (a
// yield, a blocking call, an end) first writes why into this struct, then switches to the landing: the procedure's
// old frames are gone, and activate() calls it anew.

#include "ums/completion_list.hpp"
#include "ums/context.hpp"
#include "ums/landing.hpp"
#include "ums/ums_scheduling.h"

namespace ums::scheduling {

// Why control is back on the scheduler's stack. The first three are what the procedure is told.
enum class arrival_reason : unsigned char {
    startup = UMS_REASON_STARTUP,
    blocked = UMS_REASON_BLOCKED,
    yield = UMS_REASON_YIELD,
    hand_over,  // Futex mode: give the kernel thread to `running`, then wait.
    leave,      // The procedure wants to be done.
};

struct scheduler_thread {
    landing base;
    void* pointer;  // Thread pointer.
    context* running = nullptr;
    arrival_reason reason = arrival_reason::startup;
    void* argument = nullptr;
    // Futex mode: set when `reason` has been.
    base::atomic<std::uint32_t> is_back{0};

    // Set once in enter():
    context* self = nullptr;
    ums_scheduler_procedure_t procedure = nullptr;
    void* parameter = nullptr;
    completion_list* list = nullptr;
    handle list_handle = 0;

    long left_at = 0;  // When a worker came back, while times are measured.
};

int enter(const ums_scheduler_options_t& options);
int execute(handle h) noexcept;
int leave_procedure() noexcept;

void measure(bool on) noexcept;

}  // namespace ums::scheduling
