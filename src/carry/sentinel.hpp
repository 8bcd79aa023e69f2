// SPDX-License-Identifier: MIT
#pragma once

// carry/sentinel.hpp: a thread that runs when no other thread wants its CPU.
//
// It is confined to one CPU and of class SCHED_IDLE: it gets the CPU at the moment that everybody
// else has left it, and loses it as soon as anybody comes back. All it does then is to wake the
// waiter of one word, once. What that means is for the waiter to find out.
//
// A thread of that class may be preempted at any instruction, and get its next turn seconds later
// if other programs keep the CPU busy. So it never holds a lock, a claim or a pin; it calls neither
// the allocator nor anything that might; and nobody waits for its end: stop() leaves a thread that
// does not end soon to itself, with the memory that it uses, and later calls of start() and stop()
// collect what has ended.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/kernel_thread.hpp"

namespace ums::carry {

class sentinel {
public:
    // How long stop() waits for one that it may not put into an ordinary class again: an unprivileged
    // process must not (RLIMIT_NICE). Then the thread is left, and joined later.
    static constexpr os::nanoseconds patience = 5'000'000;

    // What the waiter sleeps on.
    enum phase : std::uint32_t {
        watching,  // The sentinel may be armed. Next: called, by the sentinel.
        called,    // The waiter shall look. Next: any, by the waiter.
        asleep,    // A carrier may set it to watching.
        dormant,   // Only the monitor may.
    };

    // A sentinel for the CPU to which the calling thread is confined; it inherits that and the
    // signal mask. Null: no memory or no thread. Where the kernel refuses the class and a low
    // priority, too, it does nothing.
    [[nodiscard]] static sentinel* start() noexcept;
    void stop() noexcept;  // `this` is gone when it returns.
    // Joins those that were left and have ended meanwhile. False: some have not. Does not wait.
    static bool collect() noexcept;

    sentinel(const sentinel&) = delete;
    sentinel& operator=(const sentinel&) = delete;

    // The next time that nobody else wants the CPU, the word becomes `called` if it is `watching`,
    // and its waiter is woken.
    void arm() noexcept;

    base::atomic<std::uint32_t> word{called};

private:
    enum : std::uint32_t { rests, watches, ends };

    sentinel() noexcept = default;
    ~sentinel() = default;

    void run() noexcept;
    // An ordinary thread again, on any CPU. False: that is not permitted, or it has ended.
    [[nodiscard]] bool raise() noexcept;

    base::atomic<std::uint32_t> duty_{rests};
    base::atomic<int> tid_;
    os::kernel_thread thread_;
    sentinel* next_left_ = nullptr;  // Of those that have not ended. Guarded by a lock of
                                     // sentinel.cpp.
};

}  // namespace ums::carry
