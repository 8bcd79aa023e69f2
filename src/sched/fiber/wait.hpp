// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/wait.hpp: one wait, an object on the waiter's stack. While it is there, the fiber's
// descriptor says what it waits for (sched/fiber/wait_record.hpp).
//
// The slow path of a wait makes it right before it parks. Cost: two plain stores, into a cache line
// that the fiber's waker touches anyway; for a lock without limit, four stores more, or for a plain
// thread two short lock sections.

#include <cstdint>

#include "sched/fiber/fiber.hpp"

namespace ums::sched {

class wait {
public:
    wait(parkable& who, wait_kind kind, std::uint64_t what) noexcept
        : who_{who.is_fiber ? static_cast<fiber*>(&who) : nullptr} {
        constexpr unsigned shift = wait_record::kind_shift;
        if (who_ != nullptr)
            who_->waits.what.set(std::uint64_t{static_cast<std::uint8_t>(kind)} << shift | what);
    }
    wait(parkable& who, wait_kind kind, const void* object) noexcept
        : wait{who, kind, reinterpret_cast<std::uint64_t>(object)} {}
    ~wait() {
        if (who_ != nullptr) who_->waits.what.set(0);
    }
    wait(const wait&) = delete;
    wait& operator=(const wait&) = delete;

protected:
    fiber* const who_;  // Null for a plain thread.
};

// A plain thread's wait for a lock. It has no descriptor that can be found, so this is in a list.
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

// Calls each() for every wait of a plain thread. They stay while it runs, which must be short.
void for_each_thread_wait(void (*each)(const thread_wait& w, void* context), void* context);

// A wait for a lock that another holds. From its beginning to its end the waiter does nothing but
// try to get that lock; it keeps what it holds.
class lock_wait : wait {
public:
    // `owner` is the lock's owner word. If `is_endless` is false, the wait ends by itself, and the
    // deadlock report is told nothing.
    lock_wait(parkable& who, wait_kind kind, const void* lock, const std::uintptr_t& owner,
              bool is_endless) noexcept;
    ~lock_wait();

private:
    const bool is_endless_;
    thread_wait thread_;
};

}  // namespace ums::sched
