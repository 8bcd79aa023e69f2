// SPDX-License-Identifier: MIT
#pragma once

// carry/detect/monitor_detector.hpp: a thread that looks whether others have blocked.
//
// It samples all loads that are of interest: one whose activity has not changed since the last
// sample is looked up in /proc. The time to the next sample is a sixteenth of the time since a
// block was last found, between 20 us and 10 ms: where blocks are frequent they are found fast, and
// where there are none it costs little. Samples that are at least a millisecond apart look at once,
// whether the activity changed or not. So 10 ms, plus what the kernel's scheduler adds, is the
// longest time that a block can stay unseen. The loads may need looks of their own
// (load::look_after()), for example when time slices end. While nothing is of interest, and no such
// look is needed, it takes one sample after the other until they are 10 ms apart and two in a row
// have seen nothing move, then sleeps until nudge(). A sleep for each pause of a program that does
// little would cost more wake-ups than the samples. If no block was found since the last sleep, the
// next samples are 10 ms apart again: what wakes up often and never blocks costs one or two samples
// each time, and not the hundred that lead from 20 us to 10 ms.
//
// Rejected: Go's way of fifty samples of 20 us, then doubling, because after 25 ms each block takes
// 10 ms.
//
// Cost: up to 2 us for each sample and each thread that computes. At 20 us that is a tenth of a
// CPU, for as long as blocks are found.

#include <atomic>
#include <thread>

#include "carry/detect/detector.hpp"
#include "carry/detect/sentinels.hpp"
#include "carry/detect/watch_list.hpp"
#include "os/thread/thread_state.hpp"

namespace ums::carry {

class monitor_detector final : public detector {
public:
    // Set while no detector runs; for tests.
    static inline std::atomic<os::nanoseconds> shortest{20'000}, longest{10'000'000};

    monitor_detector() noexcept = default;
    ~monitor_detector() override { stop(); }

    [[nodiscard]] std::string start() override;
    void stop() noexcept override;
    void leave_behind() noexcept override { states_.close(); }
    void add(load& w) override {
        all_.add(w);
        nudge();
    }
    void remove(load& w) noexcept override { all_.remove(w); }
    [[nodiscard]] int look_away() noexcept override { return sentinels_.look_away(); }
    void watch_again(int cpu) noexcept override { sentinels_.watch_again(cpu); }

    [[nodiscard]] std::uint64_t samples() const noexcept { return samples_.get(); }
    [[nodiscard]] bool is_asleep() const noexcept {
        return asleep_.load(base::relaxed) != 0;  // relaxed: a hint.
    }
    // How many of the blocks that were found a sentinel has reported.
    [[nodiscard]] std::uint64_t found_by_sentinels() const noexcept { return sentinels_.found(); }

private:
    struct sample {
        bool any_of_interest = false;
        bool any_blocked = false;
        bool any_moved = false;            // An activity has changed since the last sample.
        os::nanoseconds next = os::never;  // When a load needs the next look, at the latest.
    };

    void run() noexcept;
    sample take(os::nanoseconds now, bool at_once) noexcept;
    [[nodiscard]] bool may_sleep() noexcept;
    void sleep() noexcept;
    void wake() noexcept override;
    void wake_sampler() noexcept;

    watch_list all_;
    watch_list::observer looks_{all_};  // The sampler's.
    os::thread_states states_;
    sentinels sentinels_{all_, states_, sleeps_};
    base::atomic<std::uint32_t> asleep_;
    base::atomic<std::uint32_t> ends_;
    base::owned<std::uint64_t> samples_{0};
    std::thread sampler_;
};

}  // namespace ums::carry
