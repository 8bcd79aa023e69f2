// SPDX-License-Identifier: MIT
#pragma once

// os/no_stop.hpp: sections in which a signal must not stop a carrier (sched/block/stop.hpp) or a
// worker (workers/left/stray.hpp), which is a plain thread here.
//
// Code that was stopped waits for a processor. So it must not hold what other threads need in order
// to give it one: the runtime's own locks (os/lock.hpp), a processor that was taken out of the idle
// set and not yet woken. Cost: a load of the thread slot, an addition and a subtraction; on plain
// threads two calls.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/thread_slot.hpp"

namespace ums::os {

// If the thread slot is not null, what it points to begins with this.
struct slot_head {
    // How many such sections the thread is in. The thread's signal handler reads it.
    base::owned<std::uint32_t> no_stops;
};

inline void begin_no_stop() noexcept {
    if (auto* here = static_cast<slot_head*>(thread_slot()))
        here->no_stops.add(1);
    else
        count_plain_sections(1);
    base::compiler_fence();
}
inline void end_no_stop() noexcept {
    base::compiler_fence();
    if (auto* here = static_cast<slot_head*>(thread_slot()))
        here->no_stops.add(~std::uint32_t{0});
    else
        count_plain_sections(~0u);
}

// The section must begin and end on the same kernel thread.
class no_stop {
public:
    no_stop() noexcept { begin_no_stop(); }
    ~no_stop() { end_no_stop(); }
    no_stop(const no_stop&) = delete;
    no_stop& operator=(const no_stop&) = delete;
};

}  // namespace ums::os
