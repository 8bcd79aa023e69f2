// SPDX-License-Identifier: MIT
#pragma once

// block/sentinels.hpp: threads that run when the carrier of a load does not.
//
// A sentinel is confined to one CPU and of class SCHED_IDLE: it gets the CPU at the moment a carrier leaves
// it, finds out by one look whether that carrier has blocked, and reports it. It is runnable while a load of
// interest was last seen on its CPU, and else it sleeps. So a block is found within some microseconds, and
// a carrier that does not block never notices.
//
// Sentinels are the first line only: where other programs keep the CPU busy they hardly run. Whatever they
// miss the monitor finds.
//
// The sleep needs no fence. A carrier becomes of interest, then reads the count of sleepers; a sentinel
// counts itself, then looks once more. As long as both are on one CPU, they take turns there, and each sees all
// that the other did before it was switched out: so the sentinel finds the carrier, or the carrier the
// sentinel. A carrier that comes from another CPU in between may be missed: that is the monitor's to find.
//
// Making them. Nothing on the way of a report may allocate: a fiber blocked inside the allocator may be what
// is to be reported. So one sentinel is there from the start, without a CPU; the monitor gives it one where
// it found a block, and before it takes up its duty it makes the next.
//
// When one is woken. It asks to be woken (`asleep`) by a carrier that leaves its driver on its CPU; after
// `most_in_vain` such wake-ups without a block it does not (`dormant`), and costs a server that waits often
// nothing. The monitor wakes it when it next finds a block there.

#include <memory>
#include <thread>

#include "base/atomic.hpp"
#include "block/watch_list.hpp"
#include "os/clock.hpp"
#include "os/thread_state.hpp"

namespace ums::block {

class sentinels {
public:
    // How long one looks on while nothing is of interest on its CPU, before it sleeps.
    static constexpr os::nanoseconds linger = 30'000;
    static constexpr unsigned most_in_vain = 4;

    // `sleepers`: counts those that want to be woken.
    sentinels(watch_list& all, os::thread_states& states,
              base::atomic<std::uint32_t>& sleepers) noexcept;
    ~sentinels();  // Requires: stopped.
    sentinels(const sentinels&) = delete;
    sentinels& operator=(const sentinels&) = delete;

    // Where threads cannot be made, or confined to a CPU, there are none.
    void start() noexcept;
    void stop() noexcept;

    // By the monitor. Blocks are found on `cpu`: it shall have a sentinel that is awake. Calls no allocator.
    void guard(int cpu) noexcept;
    // By the monitor, now and then: a carrier shall wake only those that have found a block since the last time.
    void let_sleep() noexcept;
    // By a carrier that begins to run fibers: wakes the one of its CPU, if that wants to be woken.
    void wake_here() noexcept;

    // Blocks that they have reported.
    [[nodiscard]] std::uint64_t found() const noexcept {
        return found_.load(base::relaxed);  // relaxed: statistics.
    }

private:
    class sentinel;

    // Makes the one that is without a CPU. By start(), then by the last that was made.
    std::unique_ptr<sentinel> make_one() noexcept;

    watch_list& all_;
    os::thread_states& states_;
    base::atomic<std::uint32_t>& sleepers_;
    base::atomic<std::uint64_t> found_;
    base::atomic<std::uint32_t> ends_;
    base::atomic<sentinel*> free_;  // Without a CPU.
    unsigned cpus_ = 0;
    std::unique_ptr<base::atomic<sentinel*>[]> on_cpu_;
    std::unique_ptr<sentinel> first_;  // Each owns the next that was made.
};

}  // namespace ums::block
