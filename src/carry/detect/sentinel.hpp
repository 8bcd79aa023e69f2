// SPDX-License-Identifier: MIT
#pragma once

// carry/detect/sentinel.hpp: a thread that runs when no other thread wants its CPU.
//
// It is confined to one CPU and has the class SCHED_IDLE: it gets the CPU at the moment when every
// other thread has left it, and loses it as soon as another comes back. All it does then is to wake
// the waiter of one word, once. The waiter finds out what that means.
//
// A thread of that class may be preempted at any instruction, and get its next turn seconds later
// if other programs keep the CPU busy. So it never holds a lock, a claim or a pin; and it calls
// neither the allocator nor anything that might. No thread waits for its end: stop() leaves a
// thread that does not end soon alone, with the memory that it uses, and later calls of start() and
// stop() collect what has ended.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/thread/kernel_thread.hpp"

namespace ums::carry {

class sentinel {
public:
    // How long stop() waits for a sentinel that it may not put into an ordinary class again, which
    // an unprivileged process must not (RLIMIT_NICE). After that the thread is left, and joined
    // later.
    static constexpr os::nanoseconds patience = 5'000'000;

    // What the waiter sleeps on.
    enum phase : std::uint32_t {
        watching,  // The sentinel may be armed. Next: called, by the sentinel; or asleep, by a
                   // carrier that looks away for a moment.
        called,    // The waiter is to look. Next: any, by the waiter.
        asleep,    // A carrier may set it to watching.
        dormant,   // Only the monitor may.
    };

    // Returns a sentinel for the CPU to which the calling thread is confined; the sentinel inherits
    // that and the signal mask. Null if there is no memory or no thread. If the kernel refuses both
    // the class and a low priority, it does nothing.
    [[nodiscard]] static sentinel* start() noexcept;
    void stop() noexcept;  // `this` is gone when it returns.
    // Joins those that were left and have ended meanwhile. False: some have not. Does not wait.
    static bool collect() noexcept;

    sentinel(const sentinel&) = delete;
    sentinel& operator=(const sentinel&) = delete;

    // The next time that no other thread wants the CPU, the word becomes `called` if it is
    // `watching`, and its waiter is woken.
    void arm() noexcept;

    base::atomic<std::uint32_t> word{called};

private:
    enum : std::uint32_t { rests, watches, ends };

    sentinel() noexcept = default;
    ~sentinel() = default;

    void run() noexcept;
    // Makes it an ordinary thread again, on any CPU. Returns false if that is not permitted, or if
    // it has ended.
    [[nodiscard]] bool raise() noexcept;

    base::atomic<std::uint32_t> duty_{rests};
    // Its thread's id while that may be put into another class, or one of these. A thread does not
    // end while its id is in use: the kernel could give it to another one.
    enum : std::uint32_t { not_yet, in_use = ~0u - 1, gone = ~0u };
    void end() noexcept;
    base::atomic<std::uint32_t> tid_{not_yet};
    os::kernel_thread thread_;
    // The next of those that have not ended. Guarded by a lock of sentinel.cpp.
    sentinel* next_left_ = nullptr;
};

}  // namespace ums::carry
