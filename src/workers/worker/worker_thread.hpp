// SPDX-License-Identifier: MIT
#pragma once

// workers/worker/worker_thread.hpp: the kernel thread behind a worker, its home.
//
// The home is an ordinary pthread. The worker's function runs on the pthread's stack, with its TLS
// block, but on the kernel thread of whichever scheduler executes the worker. Meanwhile the home
// sleeps in home_loop(), with its stack pointer at the top of the same stack: the worker's frames
// begin some pages lower. A worker that is about to block, or that ends, goes home: its registers
// are saved, the scheduler's kernel thread continues as the scheduler, and the home continues the
// worker. So whatever depends on the kernel thread (the system calls it blocks in, its exit)
// happens on the right one.
//
// While the home sleeps it must not run a signal handler, which would use the TLS block at the same
// time as the worker. So it blocks all signals but the C library's own for setuid(), whose handler
// is made for that.

#include <sys/types.h>

#include "os/lock.hpp"
#include "ums/ums_scheduling.h"
#include "workers/worker/completion_list.hpp"
#include "workers/worker/context.hpp"

namespace ums::scheduling {

struct worker_thread : entry {
    entry_links links;

    // Set once by the thread that makes the worker:
    ums_worker_function_t function;
    void* argument;
    void (*ended)(void*, std::intptr_t);
    void* ended_argument;
    completion_list* list;  // The worker is one of its users.
    context* scheduled;
    handle scheduled_handle;
    unsigned colour;
    std::size_t stack_bytes;
    pthread_t id;

    // Written by the thread itself:
    base::atomic<std::uint32_t> tid{0};
    base::atomic<bool> has_ended{false};
    base::owned<std::intptr_t> exit_code;
    const void* stack_top;      // The top of the worker's part.
    std::uint64_t signals = 0;  // The mask that the worker runs with at home.

    base::atomic<std::uint32_t> holders{0};  // The thread, and its handle.
    base::atomic<bool> is_joined{false};

    // A caller that suspends, resumes or ends the worker by its handle holds this lock meanwhile,
    // so that the worker does not end and its context does not pass to another worker. It is taken
    // before a list's lock. Nothing blocks or switches under it.
    os::lock lock{os::lock_rank::change};
    // Guarded by lock:
    bool is_ending{false};  // From here on such calls find that the worker has ended.
    // The handle, too, is withdrawn under the lock.
};

using worker_table = handle_table<worker_thread, 3>;
extern worker_table workers;

int create_worker(handle& made, const ums_worker_options_t& options, ums_worker_function_t function,
                  void* argument) noexcept;
int join_worker(handle h, std::intptr_t* exit_code);
int detach_worker(handle h) noexcept;
int suspend_worker(handle h, unsigned* previous) noexcept;
int resume_worker(handle h, unsigned* previous) noexcept;
int terminate_worker(handle h, std::intptr_t exit_code) noexcept;
int exit_code_of(handle h, std::intptr_t* exit_code) noexcept;
int tid_of(handle h) noexcept;

// Whether it is the first function on the worker's part of the stack.
bool is_first_frame(const void* function) noexcept;

// Sends a worker whose end was ordered to its end, if it is parked and no scheduler executes it.
void end_if_killed(context& c) noexcept;

// Gives an order to the worker's own kernel thread.
void order_home(context& c, home_order order) noexcept;

}  // namespace ums::scheduling
