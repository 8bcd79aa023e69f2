// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/held_locks.hpp: the locks that a fiber holds, for the warnings of debug builds
// (sync/lock_order.hpp). Beyond the first few they are not tracked.

#include <cstdint>

namespace ums::sched {

struct held_locks {
    struct one {
        const void* lock = nullptr;  // Used only as an address: the lock may be gone.
        std::uint32_t number = 0;
    };
    static constexpr unsigned most = 16;
    unsigned count = 0;
    one lock[most] = {};
};

}  // namespace ums::sched
