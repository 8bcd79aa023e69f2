// SPDX-License-Identifier: MIT
#pragma once

// rt/cpu_follower.hpp: as many processors as the process has CPUs, when that changes.
//
// The CPUs are those of the affinity mask, which a cpuset narrows too, and of the control groups'
// quotas (os/cpu_quota.hpp). No kernel interface tells of all of these: a file of a control group
// can be watched, but not from inside of a container, whose mount is another one than the writer's;
// and nothing tells of a mask. So a thread looks, at most once a second, when the detector of
// blocking says that something runs. While nothing runs, nobody looks, and it does not matter.
//
// Cost: a kernel thread, and some file reads a second while fibers run.

#include <string>
#include <thread>

#include "base/atomic.hpp"
#include "os/clock.hpp"

namespace ums::sched {
class cluster;
}

namespace ums::rt {

class cpu_follower {
public:
    // Set while no runtime runs; for tests.
    static inline os::nanoseconds period = 1'000'000'000;

    // `home` keeps at most `most` processors. `root`: see os/cpu_quota.hpp. One at a time. Requires
    // a detector. Throws std::system_error.
    cpu_follower(sched::cluster& home, unsigned most, std::string root);
    ~cpu_follower() { end(); }
    cpu_follower(const cpu_follower&) = delete;
    cpu_follower& operator=(const cpu_follower&) = delete;

    // Changes nothing more. The object goes after the cluster has been stopped: until then the
    // detector may call it.
    void end() noexcept;

private:
    static constexpr std::uint32_t rests = 0, looks = 1, ends = 2;

    static void on_look(os::nanoseconds now) noexcept;
    void run() noexcept;
    void fit();

    sched::cluster& home_;
    const unsigned most_;
    const std::string root_;
    base::atomic<std::uint32_t> state_;
    os::nanoseconds last_ = 0;  // The detector's: when it last asked for a look.
    std::thread thread_;
};

}  // namespace ums::rt
