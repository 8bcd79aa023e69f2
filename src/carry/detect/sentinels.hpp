// SPDX-License-Identifier: MIT
#pragma once

// carry/detect/sentinels.hpp: finds a block at the moment it begins.
//
// There are two threads on each CPU where blocks are found. A sentinel (carry/detect/sentinel.hpp)
// runs when every other thread has left the CPU, and wakes the agent. The agent, an ordinary thread
// that is confined to the same CPU, looks at the loads whose kernel thread was last seen there, and
// reports the one that has blocked. Then it arms the sentinel again, and sleeps. So a block is
// found within some microseconds, and a carrier that does not block never notices. Only the agent
// takes the locks and claims that acting on a block needs, so other threads wait for it no longer
// than for any thread.
//
// They are only the first line: where other programs keep the CPU busy, a sentinel hardly runs. The
// monitor finds whatever they miss.
//
// The sleep: while no load is of interest on its CPU, an agent sleeps and its sentinel rests. It
// asks to be woken (`asleep`) by a carrier that begins to run fibers there. After `most_in_vain`
// such wake-ups without a block it no longer asks (`dormant`), and so costs nothing for a server
// that waits often. The monitor wakes it when it next finds a block there.
//
// Going to sleep needs no fence. A carrier becomes of interest, then reads the count of sleepers;
// an agent counts itself, then looks once more. As long as both are on one CPU, they take turns
// there, and each sees all that the other did before it was switched out: so either the agent finds
// the carrier, or the carrier finds the agent. A carrier that comes from another CPU in between may
// be missed; the monitor finds it.
//
// Making them: nothing on the path of a report may allocate, because a fiber blocked inside the
// allocator may be the one to report. So one agent exists from the start, without a CPU. The
// monitor gives it a CPU where it found a block, and before the agent takes up its duty it makes
// the next one.

#include <memory>
#include <thread>

#include "base/atomic.hpp"
#include "carry/detect/watch_list.hpp"
#include "os/clock.hpp"
#include "os/thread/thread_state.hpp"

namespace ums::carry {

class sentinels {
public:
    static constexpr unsigned most_in_vain = 4;
    // A CPU may be free although its load runs: for example, the load may be in a system call on
    // another CPU. An agent that is called this often in a row, within `shortest_pause` each, lets
    // the sentinel rest for a while.
    static constexpr unsigned most_in_a_row = 4;
    static constexpr os::nanoseconds shortest_pause = 50'000, longest_pause = 1'600'000;

    // `sleepers` counts the agents that want to be woken.
    sentinels(watch_list& all, os::thread_states& states,
              base::atomic<std::uint32_t>& sleepers) noexcept;
    ~sentinels();  // Requires: stopped.
    sentinels(const sentinels&) = delete;
    sentinels& operator=(const sentinels&) = delete;

    // If threads cannot be made, or confined to a CPU, there are none.
    void start() noexcept;
    void stop() noexcept;

    // Called by the monitor: blocks are found on `cpu`, which is to be watched from now on. Calls
    // no allocator.
    void guard(int cpu) noexcept;
    // Called by the monitor now and then: from now on carriers wake only agents that have found a
    // block since the last time.
    void let_sleep() noexcept;
    // Called by a carrier that begins to run fibers: wakes the agent of its CPU, if that wants to
    // be woken.
    void wake_here() noexcept;

    // Called by a carrier that is about to leave its CPU for a moment: lets the sentinel there
    // rest, if it watches. Returns the CPU; -1: nothing is to be done after the moment.
    [[nodiscard]] int look_away() noexcept;
    void watch_again(int cpu) noexcept;

    // The number of blocks that they have reported.
    [[nodiscard]] std::uint64_t found() const noexcept {
        return found_.load(base::relaxed);  // relaxed: statistics.
    }

private:
    class agent;

    // The agent that has its post on the CPU, or null.
    [[nodiscard]] agent* agent_on(int cpu) const noexcept;

    // Makes the agent that is without a CPU. Called by start(), then by the agent made last.
    std::unique_ptr<agent> make_one() noexcept;

    watch_list& all_;
    os::thread_states& states_;
    base::atomic<std::uint32_t>& sleepers_;
    base::atomic<std::uint64_t> found_;
    base::atomic<std::uint32_t> ends_;
    base::atomic<agent*> free_;  // The agent without a CPU.
    unsigned cpus_ = 0;
    std::unique_ptr<base::atomic<agent*>[]> on_cpu_;
    std::unique_ptr<agent> first_;  // Each owns the next one that was made.
};

}  // namespace ums::carry
