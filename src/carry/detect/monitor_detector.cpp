// SPDX-License-Identifier: MIT

// The sleep: a thread that becomes of interest makes that visible, then reads sleeps_ (nudge()).
// The sampler stores `asleep` and counts itself in sleeps_, executes a heavy fence, then asks every
// load once more. By the argument of os/cpu/membarrier.hpp one of them sees the other: the sampler
// stays awake, or the thread turns to sleep_. stop() stores ends_, then wakes the sampler the same
// way, with a fence of its own. The thread that sets sleep_ to `awake` takes the sampler out of the
// count.
//
// Calling off: as long as the sampler is not `awake` it is counted, so each load that becomes of
// interest comes to sleep_, whose changes have one order. The first one sets the alarm, and if it
// is of interest no more when it calls that off, without any other having come, then none is: none
// was when the sampler fell asleep. One that comes before or meanwhile makes the word `awake`, so
// that the alarm stays, or is set once more. An alarm that was set and called off may still come:
// the sampler sleeps on.
#include "carry/detect/monitor_detector.hpp"

#include <algorithm>
#include <string>
#include <sys/prctl.h>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "carry/detect/report.hpp"
#include "carry/service_thread.hpp"
#include "os/futex.hpp"

namespace ums::carry {

std::string monitor_detector::start() {
    UMS_ASSERT(!sampler_.joinable(), "a detector was started twice");
    if (const long error = states_.open(); error != 0)
        return "/proc/self/task: " + std::generic_category().message(static_cast<int>(-error));
    ends_.store(0, base::relaxed);    // relaxed: the thread that reads it does not exist yet.
    sleeps_.store(0, base::relaxed);  // relaxed, all: the same.
    sleep_.store(awake, base::relaxed);
    has_begun_.store(0, base::relaxed);  // relaxed: the same.
    sentinels_.start();                  // First: the sampler works with what this sets up.
    try {
        sampler_ = service_thread("ums monitor", [this] { run(); });
    } catch (...) {
        sentinels_.stop();
        states_.close();
        throw;
    }
    return {};
}

void monitor_detector::stop() noexcept {
    if (!sampler_.joinable()) return;
    // relaxed: the fence orders it before the load in leave_sleep().
    ends_.store(1, base::relaxed);
    base::full_fence();
    os::futex_wake(ends_.address());
    leave_sleep();
    // Also where an alarm is set for later. sync(block.sleep): sees it; a sampler that has not
    // begun yet sees ends_.
    if (has_begun_.load(base::acquire) != 0) alarm_.ring();
    sampler_.join();
    alarm_.end();
    sentinels_.stop();
    states_.close();
}

void monitor_detector::add(load& w) {
    all_.add(w);
    base::full_fence();
    wake_sampler();  // It learns whether that is urgent.
}

void monitor_detector::wake_sampler() noexcept {
    if (leave_sleep() == asleep) alarm_.ring();
}

std::uint64_t monitor_detector::wake() noexcept {
    const std::uint64_t look = see_to_sampler();
    sentinels_.wake_here();
    return look;
}

// Ends the sleep, as far as words go. Returns what it was.
monitor_detector::phase monitor_detector::leave_sleep() noexcept {
    std::uint64_t now = sleep_.load(base::relaxed);  // relaxed: the exchange decides.
    // sync(block.sleep): sees the alarm; the sampler sees why it was woken.
    while (phase_of(now) != awake)
        if (sleep_.compare_exchange(now, with(now, awake), base::acq_rel, base::relaxed)) {
            // relaxed: a count that is too high only makes other threads look here.
            sleeps_.fetch_sub(1, base::relaxed);
            break;
        }
    return phase_of(now);
}

std::uint64_t monitor_detector::see_to_sampler() noexcept {
    std::uint64_t now = sleep_.load(base::relaxed);  // relaxed: the exchange decides.
    // relaxed, both: if they are those of an earlier sleep, the sampler wakes up sooner or later
    // than best.
    while (phase_of(now) == asleep && is_quick_.load(base::relaxed) == 0) {
        // What was nudged a moment ago will soon be again, and an alarm that is called off more
        // often than five times for each sample costs more than the samples.
        const os::nanoseconds at = os::now();
        const bool is_rare = at - alarmed_at_.load(base::relaxed) >= longest.load() / 5;
        const std::uint64_t look = is_rare ? with(now, alarmed) + phases : with(now, awake);
        // sync(block.sleep): sees the alarm; the sampler sees why it was set.
        if (!sleep_.compare_exchange(now, look, base::acq_rel, base::relaxed)) continue;
        alarmed_at_.store(at, base::relaxed);
        if (!is_rare) sleeps_.fetch_sub(1, base::relaxed);  // relaxed: as above.
        alarm_.set(longest.load());
        return is_rare ? look : 0;
    }
    wake_sampler();
    return 0;
}

void monitor_detector::call_off(std::uint64_t look) noexcept {
    // relaxed, all: only the times count.
    const os::nanoseconds at = os::now();
    if (at - alarmed_at_.load(base::relaxed) > long_run)
        return has_run_long_.store(1, base::relaxed);
    if (at - sampled_at_.load(base::relaxed) > longest_gap) return;
    std::uint64_t now = look;
    // relaxed, all: nothing is published, and the thread has set the alarm itself.
    if (!sleep_.compare_exchange(now, with(look, calling_off), base::relaxed, base::relaxed))
        return;
    alarm_.call_off();
    now = with(look, calling_off);
    if (!sleep_.compare_exchange(now, with(look, asleep), base::relaxed, base::relaxed))
        alarm_.set(longest.load());
}

void monitor_detector::hurry(std::uint64_t look) noexcept {
    // relaxed, both: as above. If another load has come meanwhile the alarm is still set; if it has
    // rung, one more ends the next sleep for nothing.
    if (sleep_.compare_exchange(look, with(look, awake), base::relaxed, base::relaxed))
        sleeps_.fetch_sub(1, base::relaxed);
    alarm_.set(soon);
}

// Returns whether it was woken for one short run at most, as far as anybody knows.
bool monitor_detector::sleep() noexcept {
    sentinels_.let_sleep();
    // The fence orders this, and the count, before the look. Release, though the fence in run() has
    // published the alarm, because ThreadSanitizer knows no fences.
    sleep_.store(with(sleep_.load(base::relaxed), asleep), base::release);
    sleeps_.fetch_add(1, base::relaxed);
    os::heavy_fence();
    // relaxed: as above.
    if (!may_sleep() || ends_.load(base::relaxed) != 0) return leave_sleep() == alarmed;
    for (;;) {
        alarm_.sleep();
        // sync(block.sleep): the sample after the sleep sees what made a load interesting.
        std::uint64_t now = sleep_.load(base::acquire);
        while (phase_of(now) == alarmed)
            if (sleep_.compare_exchange(now, with(now, awake), base::acquire, base::acquire)) {
                sleeps_.fetch_sub(1, base::relaxed);  // relaxed: as above.
                return true;
            }
        if (phase_of(now) == awake) return false;
    }
}

void monitor_detector::run() noexcept {
    ::prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    alarm_.begin();
    has_begun_.store(1, base::release);  // sync(block.sleep): publishes the alarm to stop().
    base::full_fence();                  // And to all that see sleep_; and before ends_ is read.
    os::nanoseconds found = os::now();
    os::nanoseconds slept = 0;
    bool is_still = false, is_for_one = false;
    // relaxed: stop() wakes, and the loop comes back here.
    while (ends_.load(base::relaxed) == 0) {
        const os::nanoseconds begun = os::now();
        const os::nanoseconds interval =
            std::clamp((begun - found) / 16, shortest.load(), longest.load());
        const sample s = take(begun, interval >= 1'000'000);
        if (s.any_blocked) found = begun;
        const bool was_still = std::exchange(is_still, !s.any_moved);
        if (((is_still && was_still) || is_for_one) && !s.any_of_interest && s.next == os::never &&
            interval == longest) {
            // relaxed: sleep() publishes it.
            const bool has_run_long = has_run_long_.exchange(0, base::relaxed) != 0;
            is_quick_.store(found > slept || has_run_long ? 1 : 0, base::relaxed);
            is_for_one = sleep();
            // Something begins, so be quick again if there were blocks.
            const os::nanoseconds now = os::now();
            if (found > slept) found = now;
            slept = now;
            is_still = false;
            continue;
        }
        is_for_one = false;
        // Sleeps until then or until the end, when ends_ changes.
        const os::nanoseconds next =
            begun + std::clamp((begun - found) / 16, shortest.load(), longest.load());
        os::futex_wait(ends_, 0, std::min(next, s.next));
    }
}

monitor_detector::sample monitor_detector::take(os::nanoseconds now, bool at_once) noexcept {
    samples_.add(1);
    sampled_at_.store(now, base::relaxed);  // relaxed: only the time counts.
    if (samples_.get() % 64 == 0) sentinels_.let_sleep();
    sample s;
    looks_.each([&](load& w) noexcept {
        if (const os::nanoseconds in = w.look_after(now); in != os::never)
            s.next = std::min(s.next, now + in);
        const std::uint64_t activity = w.activity();
        const bool is_same = activity == w.sampled_;
        w.sampled_ = activity;
        if (!is_same) s.any_moved = true;
        if (!w.is_of_interest()) return true;
        s.any_of_interest = true;
        if (!is_same && !at_once) return true;
        const int cpu = w.cpu();  // Read before the report: after it the load is on another CPU.
        if (!report_if_blocked(w, states_, 0, false)) return true;
        s.any_blocked = true;
        sentinels_.guard(cpu);
        return true;
    });
    return s;
}

bool monitor_detector::may_sleep() noexcept {
    const os::nanoseconds now = os::now();
    bool may = true;
    looks_.each([&](load& w) noexcept {
        may = w.look_after(now) == os::never && !w.is_of_interest();
        // relaxed: as in see_to_sampler().
        if (w.is_urgent()) is_quick_.store(1, base::relaxed);
        return may;
    });
    return may;
}

}  // namespace ums::carry
