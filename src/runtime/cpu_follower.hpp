// SPDX-License-Identifier: MIT
#pragma once

// runtime/cpu_follower.hpp: keeps as many processors as the process has CPUs, when that number
// changes.
//
// The CPUs are those of the affinity mask, which a cpuset narrows too, and of the control groups'
// quotas (os/cpu/cpu_quota.hpp). No kernel interface reports changes of all of these: a file of a
// control group can be watched, but not from inside a container, whose mount is another one than
// the writer's; and nothing reports a change of the mask. So a thread looks, at most once a second,
// when the detector of blocking says that something runs. While nothing runs it does not look, and
// that does not matter.
//
// Cost: a kernel thread, and some file reads each second while fibers run.

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

    // `home` keeps at most `most` processors. `root`: see os/cpu/cpu_quota.hpp. Only one may exist.
    // Requires a detector. Throws std::system_error.
    cpu_follower(sched::cluster& home, unsigned most, std::string root);
    ~cpu_follower() { end(); }
    cpu_follower(const cpu_follower&) = delete;
    cpu_follower& operator=(const cpu_follower&) = delete;

    // From now on it changes nothing. Destroy the object after the cluster has been stopped,
    // because until then the detector may call it.
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
    os::nanoseconds last_ = 0;  // When the detector last asked for a look. Owned by the detector.
    std::thread thread_;
};

}  // namespace ums::rt
