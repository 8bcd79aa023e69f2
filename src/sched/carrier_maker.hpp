// SPDX-License-Identifier: MIT
#pragma once

// sched/carrier_maker.hpp: the one kernel thread that makes the others.
//
// Every carrier is its child, so that what children inherit (a perf event, an affinity mask) is the same for all,
// whoever asked for them: a detector that follows the maker's children follows every carrier. And a hand-off need not
// wait for a kernel thread to be made, nor call the allocator, while a fiber's lock may be held.
//
// It sleeps unless asked. It exists as long as a `use` of it does.

#include "base/atomic.hpp"
#include "os/lock.hpp"

namespace ums::sched {

struct carrier;
class carrier_pool;

class carrier_maker {
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

    // The kernel's number of the thread.
    [[nodiscard]] static int tid() noexcept;

    // Starts a carrier's thread and waits until that is done. Returns an error number.
    [[nodiscard]] static int start(carrier& c) noexcept;

    // Wants a spare for the pool, and its ended carriers joined. Does not wait.
    static void ask(carrier_pool& pool) noexcept;

    // Waits until the pool is not being worked for, and takes its wishes back.
    static void forget(carrier_pool& pool) noexcept;
};

}  // namespace ums::sched
