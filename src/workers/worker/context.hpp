// SPDX-License-Identifier: MIT
#pragma once

// workers/worker/context.hpp: a worker's state, and the part of a scheduler's state that outlives
// it.

#include <pthread.h>

#include "arch/context.hpp"
#include "base/atomic.hpp"
#include "ums/ums_scheduling.h"
#include "workers/worker/handle_table.hpp"
#include "workers/worker/worker_state.hpp"

namespace ums::scheduling {

struct completion_list;
struct seat;
struct scheduler_thread;
struct worker_thread;

// A bit of the word `control`.
inline constexpr std::uint32_t killed = 1u << 31;
inline constexpr std::uint32_t most_suspensions = 127;

// What the word `home` tells the worker's own kernel thread.
enum home_order : std::uint32_t { stay, run, end };

// The two cache lines that a yield and an execution touch come first.
struct alignas(64) context : entry {
    // Guards the rest:
    worker_state state;
    base::atomic<std::uint32_t> control{0};  // The number of suspensions, and `killed`.

    // Owned by the thread that runs the worker, or has just left it:
    arch::context registers{};
    void* pointer{nullptr};  // Thread pointer. Set when the worker's thread starts.
    scheduler_thread* runner{nullptr};
    base::owned<scheduling::seat*> seat{nullptr};  // The kernel thread that runs it.

    // The second line. `thread` is null in a scheduler's context, and once the worker has ended.
    base::owned<worker_thread*> thread{nullptr};
    std::uint32_t critical{0};
    bool at_home{false};
    bool has_ended{false};
    // The scheduler that executed the worker last. In a scheduler's context: its worker.
    base::owned<handle> partner{0};
    base::owned<std::uint64_t> switches{0};  // Read as a hint.
    // The worker that was executed after this one, and what that worker touches first: see
    // foresee().
    struct successor {
        base::owned<context*> is{nullptr};
        base::owned<const char*> stack{nullptr}, pointer{nullptr};
    } after;

    base::owned<handle> list{0};  // Where the worker is queued the next time: its scheduler's list.
    std::uint32_t blocking{0};
    // Written by the thread that runs the worker, read as a hint:
    struct counters {
        // A scheduler's. A worker's yields follow from the other counts.
        base::owned<std::uint64_t> yields;
        base::owned<std::uint64_t> executed_at;  // When its times were measured last.
        base::owned<std::uint64_t> syscalls, faults, running_ns, switch_ns, measured;
    } count;

    // Used on its own kernel thread:
    base::atomic<std::uint32_t> home{stay};
    arch::context home_registers{};
    unsigned deferrals{0};  // How often a stop has been put off.

    // Links: on a list, set by the thread that pushed the worker; in a batch, by the one that
    // dequeued it.
    context* next_listed{nullptr};
    base::owned<context*> next_in_batch{nullptr};

    // Set once when the context becomes a scheduler's, null otherwise.
    base::owned<scheduler_thread*> scheduler{nullptr};
    base::atomic<void*> user_data{nullptr};
    base::owned<int> tid{0};
    entry_links links;
};

using context_table = handle_table<context, 1>;
extern context_table contexts;

// The calling thread's context: a worker's or a scheduler's; null on other threads. Each thread's
// code always runs with its own TLS block, so the address of this variable may be kept.
extern constinit thread_local context* current;

inline bool is_worker(const context* c) noexcept {
    return c != nullptr && c->thread.get() != nullptr;
}
inline bool is_scheduler(const context* c) noexcept {
    return c != nullptr && c->scheduler.get() != nullptr;
}

int create_context(context*& made) noexcept;
int destroy_context(handle h) noexcept;
int query_context(handle h, int what, void* buffer, std::size_t bytes,
                  std::size_t* length) noexcept;
int set_context(handle h, int what, const void* buffer, std::size_t bytes) noexcept;

}  // namespace ums::scheduling
