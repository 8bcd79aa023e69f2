// SPDX-License-Identifier: MIT

// No block is missed: as in perf_detector.cpp, and what a ring refuses is found by the next look at all.
#include "block/thread_perf_detector.hpp"

#include <algorithm>
#include <sys/prctl.h>
#include <unistd.h>

#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "block/perf_detector.hpp"
#include "block/report.hpp"
#include "block/service_thread.hpp"
#include "os/system.hpp"

namespace ums::block {

std::string thread_perf_detector::start(int) {
    UMS_ASSERT(!reader_.joinable(), "a detector was started twice");
    if (arch::under_valgrind()) return perf_detector::not_under_valgrind;
    const char* call = nullptr;
    if (const long error = os::try_switch_records(call); error != 0)
        return perf_detector::explain(call, error);
    const long event = os::system.event_make();
    if (event < 0) return perf_detector::explain("eventfd", event);
    event_ = static_cast<int>(event);
    ends_.store(0, base::relaxed);  // relaxed: the thread that reads it does not exist yet.
    try {
        polled_.reserve(64);
        suspects_.reserve(64);
        reader_ = service_thread("ums blocks", [this] { run(); });
    } catch (...) {
        os::system.close_fd(std::exchange(event_, -1));
        throw;
    }
    return {};
}

void thread_perf_detector::stop() noexcept {
    if (!reader_.joinable()) return;
    ends_.store(1, base::release);  // sync(block.start): the event orders, too.
    os::system.event_raise(event_);
    reader_.join();
    os::system.close_fd(std::exchange(event_, -1));
}

void thread_perf_detector::add(watched& w) noexcept {
    all_.add(w);
    try {
        auto made = std::make_unique<watched_ring>();
        made->tid = w.tid();
        const char* call = nullptr;
        if (made->ring.open(w.tid(), -1, 1, call) == 0) {
            const os::lock_guard hold{lock_};
            rings_.push_back(std::move(made));
        }
    } catch (const std::exception&) {
    }
    os::system.event_raise(event_);
}

void thread_perf_detector::remove(watched& w) noexcept {
    all_.remove(w);
    std::unique_ptr<watched_ring> gone;
    const os::lock_guard hold{lock_};
    const auto at = std::find_if(rings_.begin(), rings_.end(),
                                 [&](const auto& r) { return r->tid == w.tid(); });
    if (at == rings_.end()) return;
    std::swap(*at, rings_.back());
    gone = std::move(rings_.back());
    rings_.pop_back();
}

void thread_perf_detector::run() noexcept {
    ::prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    while (ends_.load(base::acquire) == 0) {  // sync(block.start)
        wait();
        read_rings();
        for (const suspect& s : suspects_)
            if (const auto pin = all_.find(s.tid, [](watched&) noexcept { return true; }); pin) {
                any_of_interest_ = true;
                report_if_blocked(*pin, pin->state_, s.since, true);
            }
        suspects_.clear();
        if (os::now() - looked_at_ >= look) any_of_interest_ = look_at_all();
    }
}

// Nobody is kept by the lock while this waits; a ring that has gone meanwhile is merely not readable.
void thread_perf_detector::wait() noexcept {
    polled_.clear();
    polled_.push_back({event_, POLLIN, 0});
    const timespec brief{0, pause}, period{0, look};
    if (os::system.poll_fds(polled_.data(), 1, &brief) > 0) {
        std::uint64_t count;
        (void)!::read(event_, &count, sizeof count);
        any_of_interest_ = true;
        return;
    }
    {
        const os::lock_guard hold{lock_};
        for (const auto& r : rings_) polled_.push_back({r->ring.fd(), POLLIN, 0});
    }
    os::system.poll_fds(polled_.data(), polled_.size(), any_of_interest_ ? &period : nullptr);
}

void thread_perf_detector::read_rings() noexcept {
    const os::lock_guard hold{lock_};
    for (const auto& r : rings_) {
        bool is_off = false;
        os::nanoseconds since = 0;
        r->ring.drain([&](const os::switch_record& record) noexcept {
            is_off = record.is_out && !record.is_preempted;
            since = record.when;
        });
        if (is_off) suspects_.push_back({r->tid, since});
    }
}

bool thread_perf_detector::look_at_all() noexcept {
    looked_at_ = os::now();
    bool any = false;
    all_.begin_scan();
    for (;;) {
        const auto pin = all_.next();
        if (!pin) return any;
        any |= pin->is_of_interest();
        report_if_blocked(*pin, pin->state_, 0, false);
    }
}

}  // namespace ums::block
