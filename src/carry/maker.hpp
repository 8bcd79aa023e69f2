// SPDX-License-Identifier: MIT
#pragma once

// carry/maker.hpp: the one kernel thread that makes the threads of the crews.
//
// Every carrier of fibers is its child. So what children inherit (an affinity mask, a policy of the
// kernel's scheduler) is the same for all carriers, whichever thread asked for them. And a hand-off
// need not wait for a kernel thread to be made, nor call the allocator, whose lock the code left
// behind may hold.
//
// The maker sleeps unless asked. It exists as long as a `use` of it does.
//
// A crew is what it works for: the carriers of a cluster, or those of the UMS API. If the kernel
// refuses a thread, the crew's wish is kept and tried again, after 1 ms to 1 s.

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/lock.hpp"
#include "os/thread/kernel_thread.hpp"

namespace ums::carry {

class crew {
public:
    crew() noexcept = default;
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;

protected:
    ~crew() = default;  // Requires: forgotten by the maker.

    struct outcome {
        bool was_refused = false;  // A thread could not be made, so it is to be tried again.
        // After how long to call work() without being asked; 0: not at all.
        os::nanoseconds look_again = 0;
    };

private:
    friend class maker;

    // Called by the maker: joins what has ended, makes what is wanted.
    virtual outcome work() noexcept = 0;

    // Guarded by the maker's lock:
    bool is_asking_ = false;
    crew* next_asking_ = nullptr;
    os::nanoseconds again_at_ = 0;  // When the maker works for it next; 0: at once.
    os::nanoseconds pause_ = 0;  // The pause after the kernel has refused a thread; 0: it has not.
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

    // All of these require that a `use` exists.

    // Starts `made` and waits until that is done. Returns an error number.
    [[nodiscard]] static int start(os::kernel_thread& made, void* (*body)(void*),
                                   void* argument) noexcept;

    // Makes the maker call work(). Does not wait.
    static void ask(crew& c) noexcept;

    // In the child of a fork(), which has neither the thread nor a crew: counts as used from then
    // on, and starts its thread when it is first asked for something. So a child that makes no
    // kernel thread has none.
    static void leave_behind() noexcept;

    // Waits until the crew is not being worked for, and takes its wishes back.
    static void forget(crew& c) noexcept;

private:
    static void run() noexcept;
    static int make_up() noexcept;
    static void work_for(crew& c) noexcept;
    static crew* first_due(os::nanoseconds& until) noexcept;
    static void put(crew& c, os::nanoseconds when) noexcept;
    static void remove(crew& c) noexcept;
};

}  // namespace ums::carry
