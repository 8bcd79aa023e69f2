// SPDX-License-Identifier: MIT
#pragma once

// carry/sentinels.hpp: finds a block at the moment it begins.
//
// On a CPU where blocks are found there are two threads. A sentinel (carry/sentinel.hpp) runs when
// everybody else has left the CPU, and wakes the agent. The agent, an ordinary thread that is
// confined to the same CPU, looks at the loads whose kernel thread was last seen there, and reports
// the one that has blocked. Then it arms the sentinel again, and sleeps. So a block is found within
// some microseconds, and a carrier that does not block never notices. What it takes to act on a
// block, locks and claims, is taken by the agent alone: others wait for it no longer than for any
// thread.
//
// They are the first line only: where other programs keep the CPU busy a sentinel hardly runs.
// Whatever it misses the monitor finds.
//
// The sleep. While no load is of interest on its CPU an agent sleeps and its sentinel rests. It
// asks to be woken (`asleep`) by a carrier that begins to run fibers there; after `most_in_vain`
// such wake-ups without a block it does not (`dormant`), and costs a server that waits often
// nothing. The monitor wakes it when it next finds a block there.
// Going to sleep needs no fence. A carrier becomes of
// interest, then reads the count of sleepers; an agent counts itself, then looks once more. As long
// as both are on one CPU, they take turns there, and each sees all that the other did before it was
// switched out: so the agent finds the carrier, or the carrier the agent. A carrier that comes from
// another CPU in between may be missed: that is the monitor's to find.
//
// Making them. Nothing on the way of a report may allocate: a fiber blocked inside the allocator
// may be what is to be reported. So one agent is there from the start, without a CPU; the monitor
// gives it one where it found a block, and before it takes up its duty it makes the next.

#include <memory>
#include <thread>

#include "base/atomic.hpp"
#include "carry/watch_list.hpp"
#include "os/clock.hpp"
#include "os/thread_state.hpp"

namespace ums::carry {

class sentinels {
public:
    static constexpr unsigned most_in_vain = 4;
    // A CPU may be free although its load runs: it is in a system call on another, say. An agent
    // that is called so often in a row, within `shortest_pause` each, lets the sentinel rest for a
    // while.
    static constexpr unsigned most_in_a_row = 4;
    static constexpr os::nanoseconds shortest_pause = 50'000, longest_pause = 1'600'000;

    // `sleepers`: counts those that want to be woken.
    sentinels(watch_list& all, os::thread_states& states,
              base::atomic<std::uint32_t>& sleepers) noexcept;
    ~sentinels();  // Requires: stopped.
    sentinels(const sentinels&) = delete;
    sentinels& operator=(const sentinels&) = delete;

    // Where threads cannot be made, or confined to a CPU, there are none.
    void start() noexcept;
    void stop() noexcept;

    // By the monitor. Blocks are found on `cpu`: it shall be watched. Calls no allocator.
    void guard(int cpu) noexcept;
    // By the monitor, now and then: a carrier shall wake only those that have found a block since
    // the last time.
    void let_sleep() noexcept;
    // By a carrier that begins to run fibers: wakes the one of its CPU, if that wants to be woken.
    void wake_here() noexcept;

    // Blocks that they have reported.
    [[nodiscard]] std::uint64_t found() const noexcept {
        return found_.load(base::relaxed);  // relaxed: statistics.
    }

private:
    class agent;

    // Makes the one that is without a CPU. By start(), then by the last that was made.
    std::unique_ptr<agent> make_one() noexcept;

    watch_list& all_;
    os::thread_states& states_;
    base::atomic<std::uint32_t>& sleepers_;
    base::atomic<std::uint64_t> found_;
    base::atomic<std::uint32_t> ends_;
    base::atomic<agent*> free_;  // Without a CPU.
    unsigned cpus_ = 0;
    std::unique_ptr<base::atomic<agent*>[]> on_cpu_;
    std::unique_ptr<agent> first_;  // Each owns the next that was made.
};

}  // namespace ums::carry
