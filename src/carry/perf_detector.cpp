// SPDX-License-Identifier: MIT

// No block is missed. The kernel writes the record of a switch before the thread is off its CPU, and
// makes the ring readable after that. The reader empties every ring after each wait, and a ring that
// became readable since makes the next wait return at once. A record of a thread that is not of
// interest is dropped: it was not when it blocked, and cannot become so while it is blocked. Two
// rings may hold records of one thread that changed its CPU; the later one counts.
//
// Records are refused only by a full ring. A ring that has room for more when it is looked at has
// refused none since it was emptied, for room only shrinks until then. If one has not, every thread
// that is of interest is looked at, which finds all that block now; who blocks later writes a record. The
// same after a lull: first the rings record again, then all are looked at.
#include "carry/perf_detector.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "carry/report.hpp"
#include "carry/service_thread.hpp"
#include "os/futex.hpp"
#include "os/system.hpp"

namespace ums::carry {

std::string perf_detector::explain(const char* call, long error) {
    std::string text =
        std::string{call} + ": " + std::generic_category().message(static_cast<int>(-error));
    if (error == -EACCES || error == -EPERM) {
        const int paranoid = os::perf_event_paranoid();
        if (paranoid > 2)
            text += " (perf_event_paranoid " + std::to_string(paranoid) + ")";
        else if (std::strcmp(call, "perf_event_open") == 0)
            text += " (a seccomp filter or a security module)";
        else
            text += " (perf_event_mlock_kb is used up)";
    }
    return text;
}

std::string perf_detector::open_rings(int root, unsigned cpus) {
    // 64 KiB each, 4 MiB for all, at least two pages each.
    unsigned pages = ring_pages_;
    if (pages == 0)
        for (pages = 16; pages > 2 && pages * cpus > 1024;) pages /= 2;
    for (unsigned cpu = 0; cpu < cpus; ++cpu) {
        const char* call = nullptr;
        const long error = ring_[rings_].open(root, static_cast<int>(cpu), pages, call);
        if (error == -ENODEV) continue;  // Offline. If it comes back, its records are missing.
        if (error != 0) return explain(call, error);
        polled_[rings_].fd = ring_[rings_].fd();
        polled_[rings_].events = POLLIN;
        ++rings_;
    }
    const long event = os::system.event_make();
    if (event < 0) return explain("eventfd", event);
    stop_event_ = static_cast<int>(event);
    polled_[rings_] = {stop_event_, POLLIN, 0};
    return {};
}

std::string perf_detector::start(int root) {
    UMS_ASSERT(!reader_.joinable(), "a detector was started twice");
    if (arch::under_valgrind()) return not_under_valgrind;
    go_.store(0, base::relaxed);       // relaxed: the thread that reads it does not exist yet.
    is_lost_.store(0, base::relaxed);  // relaxed: the same.
    const long configured = ::sysconf(_SC_NPROCESSORS_CONF);
    const auto cpus = static_cast<unsigned>(std::clamp(configured, 1L, 4096L));
    ring_ = std::make_unique<os::switch_ring[]>(cpus);
    polled_ = std::make_unique<pollfd[]>(cpus + 1);
    rings_ = 0;
    // The reader comes first: were this the root, a thread made later would be below it.
    reader_ = service_thread("ums blocks", [this] { run(); });
    std::string problem = open_rings(root, cpus);
    if (problem.empty())
        if (const long error = states_.open(); error != 0)
            problem = explain("/proc/self/task", error);
    // sync(block.start): the reader sees the rings, and who starts sees that they are open.
    go_.store(problem.empty() ? 1 : 2, base::release);
    os::futex_wake(go_.address());
    if (!problem.empty()) stop();
    return problem;
}

void perf_detector::stop() noexcept {
    if (!reader_.joinable()) return;
    if (stop_event_ >= 0) os::system.event_raise(stop_event_);
    reader_.join();
    ring_.reset();
    polled_.reset();
    if (stop_event_ >= 0) os::system.close_fd(stop_event_);
    stop_event_ = -1;
    states_.close();
}

bool perf_detector::works() const noexcept {
    return is_lost_.load(base::relaxed) == 0;  // relaxed: a flag.
}

void perf_detector::run() noexcept {
    // The pause shall not become longer by the default slack of 50 us.
    ::prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    // Waking up, it shall not push aside what computes on its CPU: that, too, would be a switch with a record, which wakes it
    // again, and so on, many thousand times a second. A CPU whose thread has blocked is free for it at once.
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_BATCH, &none);
    std::uint32_t go = 0;
    while ((go = go_.load(base::acquire)) == 0) os::futex_wait(go_, 0);  // sync(block.start)
    if (go == 2) return;
    gauge_ = flood_gauge{os::now()};
    while (wait()) {
        const std::uint64_t records = records_.get();
        read_rings();
        look_at_suspects();
        if (must_look_at_all_) look_at_all();
        if (gauge_.is_flooded(os::now(), records_.get() - records)) lull();
    }
}

void perf_detector::lull() noexcept {
    lulls_.add(1);
    for (unsigned i = 0; i < rings_; ++i) ring_[i].pause(true);
    const os::nanoseconds end = os::now() + gauge_.begin_lull();
    bool is_stopped = false;
    while (!is_stopped && os::now() < end) {
        const bool any_of_interest = look_at_all();
        is_stopped = is_stopped_within(gauge_.time_to_next_look(os::now(), any_of_interest));
    }
    for (unsigned i = 0; i < rings_; ++i) ring_[i].pause(false);
    look_at_all();
    gauge_.end_lull(os::now());
}

bool perf_detector::is_stopped_within(os::nanoseconds time) noexcept {
    const timespec brief{0, time};
    return os::system.poll_fds(&polled_[rings_], 1, &brief) > 0;
}

// False if it is time to stop.
bool perf_detector::wait() noexcept {
    const pollfd* const stop = &polled_[rings_];
    const os::nanoseconds begun = os::now();
    if (os::system.poll_fds(polled_.get(), rings_ + 1, nullptr) < 0) return true;
    const os::nanoseconds waited = os::now() - begun;
    for (unsigned i = 0; i < rings_; ++i) {
        if ((polled_[i].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0) continue;
        polled_[i].fd = -1;  // Else the next wait would return at once, and so on for ever.
        is_lost_.store(1, base::relaxed);  // relaxed: a flag.
    }
    if (stop->revents != 0) return false;
    // Only the end is waited for: the rings fill meanwhile.
    return waited >= pause || !is_stopped_within(pause - waited);
}

void perf_detector::read_rings() noexcept {
    for (unsigned i = 0; i < rings_; ++i) {
        const bool had_room = ring_[i].drain([&](const os::switch_record& record) noexcept {
            records_.add(1);
            looks_.each([&](load& w) noexcept {
                if (w.tid() != record.tid) return true;
                note(w, record);
                return false;
            });
        });
        if (!had_room) {
            overflows_.add(1);
            must_look_at_all_ = true;
        }
    }
}

void perf_detector::note(load& w, const os::switch_record& record) noexcept {
    const bool blocked = record.is_out && !record.is_preempted;
    if (record.when < w.since_) {
        // From the ring of a CPU it has left; or the clock of the records, which the kernel reads without its lock, has
        // stepped back by some microseconds. Whoever is taken for blocked is looked up before it is told, so the doubt
        // may go that way, and only that.
        if (!blocked || w.since_ - record.when > 1'000'000) return;
    } else {
        w.since_ = record.when;
    }
    w.is_off_ = blocked;
}

void perf_detector::look_at_suspects() noexcept {
    looks_.each([&](load& w) noexcept {
        if (std::exchange(w.is_off_, false)) look_at(w, w.since_, true);
        return true;
    });
}

bool perf_detector::look_at_all() noexcept {
    must_look_at_all_ = false;
    bool any_of_interest = false;
    looks_.each([&](load& w) noexcept {
        any_of_interest |= w.is_of_interest();
        look_at(w, 0, false);
        return true;
    });
    return any_of_interest;
}

void perf_detector::look_at(load& w, os::nanoseconds when, bool if_unknown) noexcept {
    if (report_if_blocked(w, states_, when, if_unknown)) gauge_.found(os::now());
}

}  // namespace ums::carry
