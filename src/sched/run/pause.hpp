// SPDX-License-Identifier: MIT
#pragma once

// sched/run/pause.hpp: a cluster's processors rest, each between two fibers (ums/cluster.hpp).

#include <cstdint>

#include "base/atomic.hpp"

namespace ums::sched {

class cluster;
class processor;

class pausing {
public:
    explicit pausing(cluster& of) noexcept : of_{of} {}

    // Returns once each processor rests: its carrier waits in rest(). A running fiber is stopped,
    // where fibers can be (sched/block/stop.hpp), or switches. Calls are counted. Throws
    // std::system_error.
    void begin();
    // Throws std::system_error if there was no begin().
    void end();
    [[nodiscard]] bool is_on() const noexcept {
        return times_.load(base::seq_cst) != 0;  // seq_cst: see rest().
    }

    // Called by a carrier's loop, outside. Returns once the pause is over, or the processor is to
    // retire.
    void rest(processor& p) noexcept;
    // Makes the processors that rest look again, after one was asked to retire.
    void look_again() noexcept;

private:
    [[nodiscard]] bool all_rest() const noexcept;
    void interrupt_all() noexcept;

    cluster& of_;
    base::atomic<std::uint32_t> times_;         // How often it is paused.
    base::atomic<std::uint32_t> rests_;         // Changes when a processor begins to rest.
    base::atomic<std::uint32_t> rest_changes_;  // Changes to make resting processors look again.
};

}  // namespace ums::sched
