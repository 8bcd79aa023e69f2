// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/scheduler.hpp: a thread inside enter_ums_scheduling_mode().

#include "linux_ums/body.hpp"
#include "linux_ums/view.hpp"
#include "ums/ums_stack.h"

namespace ums::linux_names {

struct scheduler {
    // Set once in enter:
    handle* of = nullptr;
    list* serves = nullptr;
    int tid = 0;
    bool is_late = false;  // It entered after its handle was released.
    int (*entry)(void*) = nullptr;
    void* argument = nullptr;
    // entry() runs on `stack`, alternating with the procedure, whose frames are discarded at each
    // execution.
    ums_stack_t* stack = nullptr;
    ums_stack_t* procedures = nullptr;

    // Used by the thread alone:
    view seen;
    body* executes = nullptr;  // The body that the procedure is to execute, or has executed.
    int outcome = 0;
    bool is_over = false;
    // When that execution began, and how many there have been.
    compat::nanoseconds since = 0;
    std::uint64_t turn = 0;

    // Written by the thread, read by the thread that writes the files:
    struct {
        std::atomic<std::uint64_t> worker{0}, switches{0}, last_ns{0}, all_ns{0};
    } figures;
};

}  // namespace ums::linux_names
