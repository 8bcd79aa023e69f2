// SPDX-License-Identifier: MIT

// The sleep. Who becomes of interest makes that visible, then reads sleeps_ (nudge()). The sampler
// stores sleeps_, executes a heavy fence, then asks everybody once more. By the argument of
// os/membarrier.hpp one of them sees the other: the sampler stays awake, or it is woken. The waker sets
// sleeps_ back to zero, which is the word the sampler's futex compares. stop() stores ends_, then wakes
// it the same way, with a fence of its own.
#include "block/monitor_detector.hpp"

#include <algorithm>
#include <string>
#include <sys/prctl.h>
#include <system_error>

#include "base/assert.hpp"
#include "block/report.hpp"
#include "block/service_thread.hpp"
#include "os/futex.hpp"

namespace ums::block {

std::string monitor_detector::start(int) {
    UMS_ASSERT(!sampler_.joinable(), "a detector was started twice");
    if (const long error = os::thread_state::try_it(); error != 0)
        return "/proc/self/task: " + std::generic_category().message(static_cast<int>(-error));
    ends_.store(0, base::relaxed);    // relaxed: the thread that reads it does not exist yet.
    sleeps_.store(0, base::relaxed);  // relaxed: the same.
    sampler_ = service_thread("ums monitor", [this] { run(); });
    return {};
}

void monitor_detector::stop() noexcept {
    if (!sampler_.joinable()) return;
    // sync(block.sleep): see below; the sequentially consistent order makes the fence.
    ends_.store(1, base::seq_cst);
    base::full_fence();
    os::futex_wake(ends_.address());
    wake();
    sampler_.join();
}

void monitor_detector::wake() noexcept {
    // sync(block.sleep): what made somebody interesting is seen by the sample after the sleep.
    sleeps_.exchange(0, base::seq_cst);
    os::futex_wake(sleeps_.address());
}

void monitor_detector::sleep() noexcept {
    sleeps_.store(1, base::seq_cst);
    os::heavy_fence();
    if (any_of_interest() || ends_.load(base::seq_cst) != 0) {
        sleeps_.store(0, base::seq_cst);
        return;
    }
    // sync(block.sleep)
    while (sleeps_.load(base::acquire) != 0) os::futex_wait(sleeps_, 1);
}

void monitor_detector::run() noexcept {
    ::prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    os::nanoseconds found = os::now();
    // relaxed: stop() wakes, and the loop comes back here.
    while (ends_.load(base::relaxed) == 0) {
        const os::nanoseconds begun = os::now();
        const os::nanoseconds interval = std::clamp((begun - found) / 16, shortest, longest);
        const sample s = take(interval >= 1'000'000);
        if (s.any_blocked) found = begun;
        if (!s.any_of_interest && interval == longest) {
            sleep();
            found = os::now();  // Something begins: be quick again.
            continue;
        }
        // Until then or the end, for which ends_ changes.
        const os::nanoseconds next = begun + std::clamp((begun - found) / 16, shortest, longest);
        os::futex_wait(ends_, 0, next);
    }
}

monitor_detector::sample monitor_detector::take(bool at_once) noexcept {
    samples_.add(1);
    sample s;
    all_.begin_scan();
    for (;;) {
        const auto pin = all_.next();
        if (!pin) return s;
        if (!pin->is_of_interest()) continue;
        s.any_of_interest = true;
        const std::uint64_t activity = pin->activity();
        const bool is_same = activity == pin->sampled_;
        pin->sampled_ = activity;
        if (is_same || at_once) s.any_blocked |= report_if_blocked(*pin, pin->state_, 0, false);
    }
}

bool monitor_detector::any_of_interest() noexcept {
    all_.begin_scan();
    for (;;) {
        const auto pin = all_.next();
        if (!pin) return false;
        if (pin->is_of_interest()) return true;
    }
}

}  // namespace ums::block
