// SPDX-License-Identifier: MIT
#pragma once

// carry/maker.hpp: the one kernel thread that makes those of the crews.
//
// Every carrier of fibers is its child, so that what children inherit (an affinity mask, a policy of the
// kernel's scheduler) is the same for all, whoever asked for them. And a hand-off need not wait for a kernel thread to be made, nor
// call the allocator, while what is left behind may hold its lock.
//
// It sleeps unless asked. It exists as long as a `use` of it does.
//
// A crew is what it works for: the carriers of a cluster, or those of the UMS API. Where the kernel refuses a thread
// the crew's wish is kept and tried again, after 1 ms to 1 s.

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/kernel_thread.hpp"
#include "os/lock.hpp"

namespace ums::carry {

class crew {
public:
    crew() noexcept = default;
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;

protected:
    ~crew() = default;  // Requires: forgotten by the maker.

    struct outcome {
        bool was_refused = false;         // A thread could not be made: to be tried again.
        os::nanoseconds look_again = 0;   // After how long work() shall be called without being asked; 0: not.
    };

private:
    friend class maker;

    // By the maker: joins what has ended, makes what is wanted.
    virtual outcome work() noexcept = 0;

    // Guarded by the maker's lock:
    bool is_asking_ = false;
    crew* next_asking_ = nullptr;
    os::nanoseconds again_at_ = 0;  // When it is worked for; 0: at once.
    os::nanoseconds pause_ = 0;     // After the kernel has refused a thread; 0: it has not.
};

class maker {
public:
    // Starts the thread if there is none yet. Throws std::system_error.
    class use {
    public:
        use();
        ~use();
        use(const use&) = delete;
        use& operator=(const use&) = delete;
    };

    // Requires for all of them: a `use` exists.

    // Starts `thread` and waits until that is done. Returns an error number.
    [[nodiscard]] static int start(os::kernel_thread& thread, void* (*body)(void*),
                                   void* argument) noexcept;

    // Has work() called. Does not wait.
    static void ask(crew& c) noexcept;

    // Waits until the crew is not being worked for, and takes its wishes back.
    static void forget(crew& c) noexcept;

private:
    static void run() noexcept;
    static void work_for(crew& c) noexcept;
    static crew* first_due(os::nanoseconds& until) noexcept;
    static void put(crew& c, os::nanoseconds when) noexcept;
    static void remove(crew& c) noexcept;
};

}  // namespace ums::carry
