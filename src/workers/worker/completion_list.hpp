// SPDX-License-Identifier: MIT
#pragma once

// workers/worker/completion_list.hpp: where workers arrive that became ready.
//
// This is a stack that is emptied only as a whole, so its links need no protection: a push is one
// compare-and-swap, and a consumer reverses what it took.

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/lock.hpp"
#include "workers/worker/context.hpp"
#include "workers/worker/handle_table.hpp"

namespace ums::scheduling {

struct completion_list : entry {
    entry_links links;
    base::atomic<context*> head{nullptr};
    // Changes with each change from empty to not empty that a consumer may be waiting for.
    base::atomic<std::uint32_t> sequence{0};
    base::atomic<std::uint32_t> waiters{0};
    base::atomic<std::uint32_t> users{
        0};  // The schedulers that are entered, and the workers that have not ended.
    base::atomic<bool> is_watched{false};  // Whether `notify` or `event` is set.

    os::lock lock{os::lock_rank::idle};
    // Guarded by lock:
    void (*notify)(void*) = nullptr;
    void* argument = nullptr;
    int event = -1;
};

using list_table = handle_table<completion_list, 2>;
extern list_table lists;

int create_list(handle& made) noexcept;
int destroy_list(handle h) noexcept;

// Counts a user, so that the list cannot be destroyed; null: the handle is unknown.
completion_list* use_list(handle h) noexcept;
void leave_list(completion_list& list) noexcept;

// Requires: the caller has set `listed`, and the list has a user or was found by its handle.
// Returns false if the list was destroyed meanwhile.
[[nodiscard]] bool push(completion_list& list, context& c) noexcept;

// See ums_completion_list_dequeue(). This blocks the kernel thread.
int dequeue(handle h, os::nanoseconds until, context*& first) noexcept;
// Takes the workers without waiting; null: the list is empty.
context* take_batch(completion_list& list) noexcept;

int set_notify(handle h, void (*notify)(void*), void* argument) noexcept;
int make_event(handle h, int& fd) noexcept;

}  // namespace ums::scheduling
