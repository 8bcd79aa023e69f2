// SPDX-License-Identifier: MIT
#pragma once

// windows/thread.hpp: a thread as its handles see it.
//
// made:    by CreateThread(): a pthread that is joined when the last reference goes after its end, or
//          detached if that is the thread itself.
// adopted: any other thread that called one of these functions.
// worker:  of the UMS API.
//
// The record is held by handles and, until its end, by the thread. The end is the last round of the
// destructors of pthread keys: all thread_local objects are gone by then, as on Windows.

#include <csetjmp>
#include <cstdint>
#include <deque>
#include <memory>
#include <pthread.h>

#include "ums/compat/windows/windows.h"
#include "ums/ums_scheduling.h"
#include "windows/object.hpp"
#include "windows/suspension.hpp"

namespace ums::windows {

class mutex;
struct fiber;

// A thread's value of a slot, valid for one use of the slot.
struct slot_value {
    std::uint32_t use = 0;
    void* value = nullptr;
};

class thread final : public object {
public:
    static constexpr kind own_kind = kind::thread;
    enum class origin : unsigned char { made, adopted, worker };

    // The caller's, without another reference.
    static thread& current() noexcept;

    explicit thread(origin o) noexcept : object{own_kind}, from{o} {}

    bool is_ready(const thread&) const noexcept override { return has_ended; }
    bool take(thread&) noexcept override { return false; }

    // By the thread itself: from here on it is `current()`, and its end is noticed. Takes over a reference.
    void begin() noexcept;
    // The worker has a result. On its own thread, which may not have begun; under no lock.
    void note_worker_end(DWORD code) noexcept;
    // Ends the calling thread, which this is.
    [[noreturn]] void exit(DWORD code);  // pthread_exit() unwinds an adopted thread.
    // Under the lock: it has a result; signals its end and gives up what it owns.
    void set_exit_code(DWORD code) noexcept;
    void end() noexcept;

    // It has ended: waits until the kernel has nothing of it either. Not under the lock.
    void join() noexcept;

    const origin from;

    // Set before it runs, then read-only:
    pthread_t handle{};
    ums_worker_t worker = 0;
    LPTHREAD_START_ROUTINE start = nullptr;
    void* argument = nullptr;

    std::atomic<std::uint32_t> id{0};

    // Guarded by the dispatcher's lock:
    bool has_ended = false;
    bool is_joined = false;  // Or gone in another way.
    bool is_scheduler = false;
    DWORD exit_code = STILL_ACTIVE;
    bool has_exit_code = false;
    int priority = THREAD_PRIORITY_NORMAL;
    mutex* owned = nullptr;
    std::deque<MSG> posted;    // Its messages.
    HANDLE arrived = nullptr;  // An event, once it has waited for one.
    waiter wait;  // What the thread alone uses, but for what waiters share.
    suspension stop;

    // The thread's own:
    PUMS_SCHEDULER_ENTRY_POINT procedure = nullptr;
    // EnterUmsSchedulingMode() ends the thread with `exit_code_asked`.
    bool exits_scheduling = false;
    DWORD exit_code_asked = 0;
    // The last word of a lock or the like that it waited on: its end wakes another, for a wake-up that it took with it.
    const void* waited_on = nullptr;
    fiber* running = nullptr;   // If it is a fiber.
    fiber* own = nullptr;       // The one that it became.
    fiber* left = nullptr;      // By its last switch.
    bool leaves_fiber = false;  // It ends as soon as it is on its own stack.
    std::unique_ptr<slot_value[]> slots;
    std::jmp_buf bottom;  // Where exit() goes. `made` only.

private:
    ~thread() override;
};

}  // namespace ums::windows
