// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/wait_note.hpp: a lock that a fiber, or a plain thread, waits for and that another
// holds.
//
// The note is for the deadlock report alone (sched/report/deadlock.cpp). A waiter without limit
// writes the address of the lock's owner word into it, whose bits above the lowest three are the
// holder's parkable (for a lock that readers hold: a number, which is not an address). From the
// note's beginning to its end the waiter does nothing but try to get that lock; it keeps what it
// holds.
//
// The count tells one wait from the next: it is odd while the fiber waits. A reader that finds the
// same odd count of the same fiber twice knows that the wait lasted all the time in between. Cost:
// four stores for each wait that is about to park; for a plain thread, two short lock sections.

#include <cstdint>

#include "base/atomic.hpp"
#include "sched/fiber/parkable.hpp"

namespace ums::sched {

struct wait_note {
    base::atomic<const std::uintptr_t*> owner;
    base::atomic<std::uint64_t> count;
};

// The locks that a fiber holds, for the warnings of debug builds (sync/lock_order.hpp). Beyond the
// first few they are not tracked.
struct held_locks {
    struct one {
        const void* lock = nullptr;  // Used only as an address: the lock may be gone.
        std::uint32_t number = 0;
    };
    static constexpr unsigned most = 16;
    unsigned count = 0;
    one lock[most] = {};
};

// A plain thread has no descriptor that can be found, so its note is in a list while it waits.
struct thread_wait {
    const parkable* who = nullptr;
    const std::uintptr_t* owner = nullptr;
    std::uint64_t serial = 0;  // Never the same twice.
    int thread = 0;            // The kernel's id.
    thread_wait* next = nullptr;
    thread_wait* previous = nullptr;

    void begin() noexcept;
    void end() noexcept;
};

// The first of the waiting threads, for readers from outside (runtime/root.hpp).
extern constinit thread_wait* thread_waits;

// In the child of a fork(): no other thread waits.
void leave_thread_waits_behind() noexcept;

// Calls each() for every note of a plain thread. They stay while it runs, which must be short.
void for_each_thread_wait(void (*each)(const thread_wait& w, void* context), void* context);

// One wait, on the waiter's stack.
class waits_for {
public:
    // `owner` is the lock's owner word. If `is_endless` is false, the wait ends by itself and
    // leaves no note.
    waits_for(parkable& self, const std::uintptr_t& owner, bool is_endless) noexcept;
    ~waits_for();
    waits_for(const waits_for&) = delete;
    waits_for& operator=(const waits_for&) = delete;

private:
    wait_note* note_ = nullptr;
    thread_wait thread_;
};

}  // namespace ums::sched
