// SPDX-License-Identifier: MIT

// The sleep: a thread that becomes of interest makes that visible, then reads sleeps_ (nudge()).
// The sampler stores asleep_ and counts itself in sleeps_, executes a heavy fence, then asks every
// load once more. By the argument of os/cpu/membarrier.hpp one of them sees the other: the sampler
// stays awake, or it is woken. asleep_ is the word that the sampler's futex compares; the thread
// that sets it back to zero takes the sampler out of the count. stop() stores ends_, then wakes the
// sampler the same way, with a fence of its own.
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
    sleeps_.store(0, base::relaxed);  // relaxed, both: the same.
    asleep_.store(0, base::relaxed);
    sentinels_.start();  // First: the sampler works with what this sets up.
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
    // relaxed: the fence orders it before the load in wake_sampler().
    ends_.store(1, base::relaxed);
    base::full_fence();
    os::futex_wake(ends_.address());
    wake_sampler();
    sampler_.join();
    sentinels_.stop();
    states_.close();
}

void monitor_detector::wake() noexcept {
    wake_sampler();
    sentinels_.wake_here();
}

void monitor_detector::wake_sampler() noexcept {
    // sync(block.sleep): the sample after the sleep sees what made a load interesting.
    if (asleep_.load(base::relaxed) == 0 || asleep_.exchange(0, base::release) == 0) return;
    // relaxed: a count that is too high only makes other threads look here.
    sleeps_.fetch_sub(1, base::relaxed);
    os::futex_wake(asleep_.address());
}

void monitor_detector::sleep() noexcept {
    sentinels_.let_sleep();
    // relaxed, all three: the fence is between them.
    asleep_.store(1, base::relaxed);
    sleeps_.fetch_add(1, base::relaxed);
    os::heavy_fence();
    if (!may_sleep() || ends_.load(base::relaxed) != 0) return wake_sampler();
    // sync(block.sleep)
    while (asleep_.load(base::acquire) != 0) os::futex_wait(asleep_, 1);
}

void monitor_detector::run() noexcept {
    ::prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    os::nanoseconds found = os::now();
    os::nanoseconds slept = 0;
    bool is_still = false;
    // relaxed: stop() wakes, and the loop comes back here.
    while (ends_.load(base::relaxed) == 0) {
        const os::nanoseconds begun = os::now();
        const os::nanoseconds interval =
            std::clamp((begun - found) / 16, shortest.load(), longest.load());
        const sample s = take(begun, interval >= 1'000'000);
        if (s.any_blocked) found = begun;
        const bool was_still = std::exchange(is_still, !s.any_moved);
        if (is_still && was_still && !s.any_of_interest && s.next == os::never &&
            interval == longest) {
            sleep();
            // Something begins, so be quick again if there were blocks.
            const os::nanoseconds now = os::now();
            if (found > slept) found = now;
            slept = now;
            is_still = false;
            continue;
        }
        // Sleeps until then or until the end, when ends_ changes.
        const os::nanoseconds next =
            begun + std::clamp((begun - found) / 16, shortest.load(), longest.load());
        os::futex_wait(ends_, 0, std::min(next, s.next));
    }
}

monitor_detector::sample monitor_detector::take(os::nanoseconds now, bool at_once) noexcept {
    samples_.add(1);
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
        may = !w.is_of_interest() && w.look_after(now) == os::never;
        return may;
    });
    return may;
}

}  // namespace ums::carry
