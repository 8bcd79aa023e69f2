// SPDX-License-Identifier: MIT
#pragma once

// windows/thread.hpp: a thread as its handles see it.
//
// made:    by CreateThread(): a pthread that is joined when its last reference is dropped after its
//          end, or detached if the thread itself drops it.
// adopted: any other thread that called one of these functions.
// worker:  a worker of the UMS API.
//
// Handles hold the record, and so does the thread until its end. The end is the last round of the
// destructors of pthread keys: by then all thread_local objects are gone, as on Windows.

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

    // The calling thread's record, without a new reference.
    static thread& current() noexcept;

    explicit thread(origin o) noexcept : object{own_kind}, from{o} {}

    bool is_ready(const thread&) const noexcept override { return has_ended; }
    bool take(thread&) noexcept override { return false; }

    // Called by the thread itself: from here on it is `current()`, and its end is noticed. Takes
    // over a reference.
    void begin() noexcept;
    // The worker has a result. Runs on its own thread, which may not have begun, and under no lock.
    void note_worker_end(DWORD code) noexcept;
    // Ends the calling thread, which must be this one.
    [[noreturn]] void exit(DWORD code);  // pthread_exit() unwinds an adopted thread.
    // Under the lock: stores the result, signals the thread's end and gives up what it owns.
    void set_exit_code(DWORD code) noexcept;
    void end() noexcept;

    // The thread has ended: waits until the kernel has nothing of it left either. Not under the
    // lock.
    void join() noexcept;

    const origin from;

    // Set before the thread runs, then read-only:
    pthread_t handle{};
    ums_worker_t worker = 0;
    LPTHREAD_START_ROUTINE start = nullptr;
    void* argument = nullptr;

    std::atomic<std::uint32_t> id{0};

    // Guarded by the dispatcher's lock:
    bool has_ended = false;
    bool is_joined = false;  // Joined, or gone in another way.
    bool is_scheduler = false;
    DWORD exit_code = STILL_ACTIVE;
    bool has_exit_code = false;
    int priority = THREAD_PRIORITY_NORMAL;
    mutex* owned = nullptr;
    std::deque<MSG> posted;    // Its messages.
    HANDLE arrived = nullptr;  // An event, once the thread has waited for a message.
    waiter wait;               // Used by the thread alone, except for what waiters share.
    suspension stop;

    // Used by the thread alone:
    PUMS_SCHEDULER_ENTRY_POINT procedure = nullptr;
    // EnterUmsSchedulingMode() ends the thread with `exit_code_asked`.
    bool exits_scheduling = false;
    DWORD exit_code_asked = 0;
    // The last word of a lock or the like that the thread waited on. When the thread ends, it wakes
    // another waiter of that word, in case it had taken a wake-up with it.
    const void* waited_on = nullptr;
    fiber* running = nullptr;   // The fiber that runs, if the thread is one.
    fiber* own = nullptr;       // The fiber that the thread became.
    fiber* left = nullptr;      // The fiber that its last switch left.
    bool leaves_fiber = false;  // The thread ends as soon as it is on its own stack.
    std::unique_ptr<slot_value[]> slots;
    std::jmp_buf bottom;  // Where exit() jumps to; for `made` threads only.

private:
    ~thread() override;
};

}  // namespace ums::windows
