// SPDX-License-Identifier: MIT
#pragma once

// workers/left/stray.hpp: a worker that blocked in the kernel by a call that was not announced; see
// workers/scheduler/seat.hpp.
//
// How a stray is stopped: when its call returns, a clock of its kernel thread begins to tick, and
// soon sends a signal in user mode (os/signal/user_interrupt.hpp), so no system call sees it. The
// handler queues the worker and leaves it there, with the signal's frame on the worker's own stack.
// The scheduler that executes the worker continues in the handler and returns from it on another
// kernel thread, whose signal mask and alternate stack it puts into the frame. Where a stop would
// do harm (workers/left/stop_point.hpp) it is put off; meanwhile the stray runs beside its
// scheduler.

#include <csignal>

#include "carry/load.hpp"
#include "workers/scheduler/seat.hpp"
#include "workers/worker/context.hpp"

namespace ums::scheduling {

struct scheduler_thread;

// For a detector, which saw the kernel thread blocked when its turns were as in the notice. Moves
// its scheduler to a spare. Returns false if it is no longer blocked, or if there is no spare yet.
bool hand_off(seat& blocked, const carry::notice& what) noexcept;

// For a scheduler on a seat that is not its own: moves back to its own if that is free, or, with
// `at_any_cost`, waits until it is.
void return_to_own_seat(scheduler_thread& s, bool at_any_cost) noexcept;

// Makes, and gives back, what the scheduler's own kernel thread needs for that.
[[nodiscard]] bool make_island(seat& own) noexcept;
void give_island_back(seat& own) noexcept;

// The handler of the signal.
void on_interrupt(const siginfo_t& signal, void* context) noexcept;

}  // namespace ums::scheduling
