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
// next samples are 10 ms apart again, and the first one, too, is due only 10 ms after the nudge: a
// processor that has nothing to run before calls it off. So what wakes up now and then, does a
// little and never blocks, costs two system calls each time, and no wake-up of this thread. If
// fibers wait there when it begins, or a deadline is near, or one is made ready beside an idle
// processor, the look comes after 100 us (hurry()). It is not called off after a run of more than a
// millisecond, which may have been a block; the next nudge after such a run wakes at once. Nor is
// it where none was taken for a second.
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
#include "os/thread/alarm.hpp"
#include "os/thread/thread_state.hpp"

namespace ums::carry {

class monitor_detector final : public detector {
public:
    // Set while no detector runs; for tests.
    static inline std::atomic<os::nanoseconds> shortest{20'000}, longest{put_off};
    static constexpr os::nanoseconds soon = 100'000;
    static constexpr os::nanoseconds long_run = 1'000'000;
    static constexpr os::nanoseconds longest_gap = 1'000'000'000;  // Between samples.

    monitor_detector() noexcept = default;
    ~monitor_detector() override { stop(); }

    [[nodiscard]] std::string start() override;
    void stop() noexcept override;
    void leave_behind() noexcept override {
        states_.close();
        alarm_.leave_behind();
    }
    void add(load& w) override;
    void remove(load& w) noexcept override { all_.remove(w); }
    void call_off(std::uint64_t look) noexcept override;
    void hurry(std::uint64_t look) noexcept override;
    [[nodiscard]] int look_away() noexcept override { return sentinels_.look_away(); }
    void watch_again(int cpu) noexcept override { sentinels_.watch_again(cpu); }

    [[nodiscard]] std::uint64_t samples() const noexcept { return samples_.get(); }
    [[nodiscard]] bool is_asleep() const noexcept {
        return phase_of(sleep_.load(base::relaxed)) == asleep;  // relaxed: a hint.
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

    // The lowest bits of sleep_. In all but the first the sampler sleeps, and is counted in
    // sleeps_. The others count the alarms, so that none is called off in another's place.
    enum phase : std::uint64_t {
        awake,        // Or woken, or about to be: no nudge has to do anything.
        asleep,       // The next nudge is to see to it that it wakes up.
        alarmed,      // It wakes up in a while, unless the one that set the alarm calls it off.
        calling_off,  // Which is going on.
    };
    static constexpr std::uint64_t phases = 4;
    [[nodiscard]] static phase phase_of(std::uint64_t word) noexcept {
        return static_cast<phase>(word % phases);
    }
    [[nodiscard]] static std::uint64_t with(std::uint64_t word, phase is) noexcept {
        return word - word % phases + is;
    }

    void run() noexcept;
    sample take(os::nanoseconds now, bool at_once) noexcept;
    [[nodiscard]] bool may_sleep() noexcept;
    [[nodiscard]] bool sleep() noexcept;
    std::uint64_t wake() noexcept override;
    std::uint64_t see_to_sampler() noexcept;
    phase leave_sleep() noexcept;
    void wake_sampler() noexcept;

    watch_list all_;
    watch_list::observer looks_{all_};  // The sampler's.
    os::thread_states states_;
    sentinels sentinels_{all_, states_, sleeps_};
    base::atomic<std::uint64_t> sleep_;
    os::alarm alarm_;
    base::atomic<std::uint32_t> has_begun_;     // So has the alarm.
    base::atomic<std::uint32_t> is_quick_;      // The next nudge wakes it at once.
    base::atomic<os::nanoseconds> alarmed_at_;  // When it was last nudged in its sleep.
    base::atomic<os::nanoseconds> sampled_at_;
    base::atomic<std::uint32_t> has_run_long_;  // Since the last sleep began.
    base::atomic<std::uint32_t> ends_;
    base::owned<std::uint64_t> samples_{0};
    std::thread sampler_;
};

}  // namespace ums::carry
