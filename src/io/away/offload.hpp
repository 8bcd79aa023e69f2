// SPDX-License-Identifier: MIT
#pragma once

// io/away/offload.hpp: the pool behind ums/offload.hpp.

#include <cstdint>

#include "base/atomic.hpp"
#include "ums/offload.hpp"

namespace ums::io {

// What a call is for. Each kind has the limit of the pool for itself.
enum class call_kind : unsigned char { ours, name, programs };

// Runs once; then the pool no longer touches it. The task itself wakes whoever waits for it.
struct offload_task {
    void (*run)(offload_task& self) noexcept;
    offload_task* next = nullptr;
    call_kind kind = call_kind::ours;
};

struct offload_pool {
    // How long a thread waits for work before it ends. Tests change it while no runtime runs.
    static inline constinit base::atomic<std::int64_t> idle_ns{10'000'000'000};
    // For how long a call of ours is asleep until it no longer counts against the limit; one of the
    // program's, a hundred times that. Tests change it as above.
    static inline constinit base::atomic<std::int64_t> asleep_ns{10'000'000};

    // Starts the first thread, if the kernel grants one. Called by a plain thread.
    static void start() noexcept;
    // Called by a fiber. Throws std::system_error if there is no thread and none can be started.
    static void submit(offload_task& task);
    // Calls run(argument) on a thread of the pool, and parks until it has returned. The rest is as
    // above.
    static void call(call_kind kind, void (*run)(void*), void* argument);
    // Runs what is queued and ends the threads. Called by a plain thread.
    static void stop() noexcept;
    // In the child of a fork(), which has no thread of the pool: an empty one with the same limit.
    // Calls that were in it are not made. Throws std::bad_alloc.
    static void leave_behind();
};

}  // namespace ums::io
