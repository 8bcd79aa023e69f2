// SPDX-License-Identifier: MIT
#include "sched/block/detection.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <sys/syscall.h>
#include <utility>

#include "os/say.hpp"
#include "sched/block/hand_off.hpp"
#include "sched/block/stop.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/search.hpp"

namespace ums::sched {

namespace {

// relaxed, all of them: statistics.
base::atomic<std::uint64_t> in_calls, in_faults, in_regions;

}  // namespace

void detection::add_to(runtime_stats& s) noexcept {
    s.blocked_in_calls += in_calls.load(base::relaxed);
    s.blocked_in_faults += in_faults.load(base::relaxed);
    s.blocked_in_regions += in_regions.load(base::relaxed);
    for (std::size_t i = 0; i < runtime_stats::notice_buckets; ++i)
        s.notice_us[i] += notices[i].load(base::relaxed);
}

void detection::forget() noexcept {
    for (auto* count : {&in_calls, &in_faults, &in_regions}) count->store(0, base::relaxed);
    for (auto& count : notices) count.store(0, base::relaxed);
    notice_ns.store(0, base::relaxed);
}

// For how long the carrier's sleep in a lock is still a short one; 0: there is none.
[[nodiscard]] os::nanoseconds sleeps_on(const carrier& c, os::nanoseconds now) noexcept {
    const os::nanoseconds since = c.in_lock_since.get();
    // relaxed: it was set before.
    const os::nanoseconds longest = detection::short_sleep.load(base::relaxed);
    return since == 0 || now - since >= longest ? 0 : longest - (now - since);
}

// A processor as a detector sees it: its carrier's thread, and whether that runs a fiber.
class processor_watch final : public carry::load {
public:
    explicit processor_watch(processor& of) noexcept : of_{of} {}

    [[nodiscard]] int tid() const noexcept override {
        const carrier* c = of_.holder();
        return c != nullptr ? c->tid.get() : 0;
    }
    [[nodiscard]] int cpu() const noexcept override {
        carrier* c = of_.holder();
        return c != nullptr ? c->cpu.get() : -1;
    }
    [[nodiscard]] bool is_of_interest() const noexcept override {
        const carrier* c = of_.holder();
        return c != nullptr && c->running.get() != nullptr && c->proc.get() == &of_ &&
               !c->stopping.is_going_on.get() &&
               (c->in_lock_since.get() == 0 || sleeps_on(*c, os::now()) == 0);
    }
    [[nodiscard]] std::uint64_t activity() const noexcept override { return of_.activity(); }
    bool on_block(const carry::notice& what) noexcept override;
    [[nodiscard]] bool is_urgent() const noexcept override {
        const os::nanoseconds slice = of_.home().carriers.time_slice;
        return slice != 0 && slice < carry::detector::put_off;
    }
    // Ends the time slice of the running fiber; that of the first processor also releases the
    // cluster's fibers that wait for their turn.
    os::nanoseconds look_after(os::nanoseconds now) noexcept override;

private:
    // Where no idle processor looks after those that run.
    os::nanoseconds find_long_run(os::nanoseconds now) noexcept;
    // The time slice of its fiber is over: stops that, or leaves it behind.
    void end_time_slice(os::nanoseconds now, std::uint64_t seen) noexcept;

    processor& of_;
    // Owned by the detector: the activity that it last saw, since when, and when the first time
    // slice of that ended while others waited (0: none has).
    std::uint64_t seen_ = 0;
    os::nanoseconds began_ = 0;
    os::nanoseconds over_since_ = 0;
    // find_long_run(): the activity at its last sample, and when that was.
    std::uint64_t sampled_ = 0;
    os::nanoseconds sampled_at_ = 0;
};

void detection::begin(processor& p) {
    if (!is_on()) return;
    auto made = std::make_unique<processor_watch>(p);
    by->add(*made);
    p.watch = made.release();
}

// The sentinel of the CPU would call its agent at once. It watches again after the sleep; the
// monitor, which look_after() keeps awake, finds a sleep that becomes a long one.
void detection::lock_sleep_begins() noexcept {
    if (!is_on()) return;
    carrier& c = *this_carrier();
    c.in_lock_since.set(os::now());
    c.looked_away.set(by->look_away());
}

void detection::lock_sleep_has_ended() noexcept {
    if (!is_on()) return;
    carrier& c = *this_carrier();
    c.in_lock_since.set(0);
    by->watch_again(c.looked_away.get());
    c.looked_away.set(-1);
    by->nudge();  // The monitor may have seen neither that it sleeps nor that it runs.
}

void detection::end(processor& p) noexcept {
    processor_watch* const watch = std::exchange(p.watch, nullptr);
    if (watch == nullptr) return;
    by->remove(*watch);
    delete watch;
}

namespace {

// A policy may wait for a lock of its own, but not sleep: its processor is not handed on.
[[gnu::cold]] void look_at_policy(const processor& of, const carrier& c,
                                  const carry::notice& what) noexcept {
    const bool sleeps = what.call == SYS_nanosleep || what.call == SYS_clock_nanosleep ||
                        what.call == SYS_poll || what.call == SYS_select;
    if (!sleeps || what.why != carry::cause::system_call || !of.has_policy() ||
        !c.ownership.is_inside())
        return;
    static constinit base::atomic<bool> has_said;
    // relaxed: the flag only says whether the line was printed.
    if (has_said.exchange(true, base::relaxed)) return;
    os::say(
        "the policy of cluster %s sleeps in one of its methods (thread %d): meanwhile its "
        "processor runs nothing, and no other kernel thread can take it over",
        of.home().name().c_str(), what.tid);
}

}  // namespace

bool processor_watch::on_block(const carry::notice& what) noexcept {
    carrier* c = of_.holder();
    if (c == nullptr || c->tid.get() != what.tid) return false;
    bool marked = false;
    using result = hand_off::result;
    const result r = hand_off::from(*c, what.activity, marked, what.free_cpu);
    if (r == result::not_blocked) {
        look_at_policy(of_, *c, what);
        return false;
    }
    if (r == result::refused) return true;
    auto& kind = marked ? in_regions : what.why == carry::cause::page_fault ? in_faults : in_calls;
    kind.fetch_add(1, base::relaxed);
    const auto ns = static_cast<std::uint64_t>(std::max(0L, os::now() - what.when));
    const auto bucket =
        std::min<std::size_t>(std::bit_width(ns / 1000), runtime_stats::notice_buckets - 1);
    detection::notices[bucket].fetch_add(1, base::relaxed);
    detection::notice_ns.fetch_add(ns, base::relaxed);
    return true;
}

os::nanoseconds processor_watch::look_after(os::nanoseconds now) noexcept {
    carrier_pool& pool = of_.home().carriers;
    if (of_.index() == 0)
        // sync(follower): sees what it is for.
        if (auto* const on_look = detection::on_look.load(base::acquire)) on_look(now);
    // The first processor, which is never removed, looks after the fibers that wait for their turn.
    os::nanoseconds next =
        std::min(of_.index() == 0 ? pool.release_if_stuck(now) : os::never, find_long_run(now));
    if (const carrier* const c = of_.holder(); c != nullptr)
        if (const os::nanoseconds left = sleeps_on(*c, now); left != 0) next = std::min(next, left);
    if (pool.time_slice == 0 || !is_of_interest()) return next;
    const std::uint64_t seen = activity();
    if (std::exchange(seen_, seen) != seen) {
        began_ = now;
        over_since_ = 0;
    }
    const os::nanoseconds ran = now - began_;
    if (ran < pool.time_slice) return std::min(next, pool.time_slice - ran);
    began_ = now;
    if (of_.is_wanted())
        end_time_slice(now, seen);
    else
        over_since_ = 0;
    return std::min(next, pool.time_slice);
}

// Remembers what runs, once for each of the monitor's longest intervals of 10 ms, and looks again
// 100 us later. A fiber that still runs then may keep others waiting that an idle processor could
// run, or events that nobody takes in, so an idle processor looks after it from then on.
os::nanoseconds processor_watch::find_long_run(os::nanoseconds now) noexcept {
    constexpr os::nanoseconds period = 9'000'000, is_long = 100'000;
    cluster& home = of_.home();
    if (home.active() <= 1 || home.needs_watcher() || !is_of_interest() ||
        home.idle.look().idle == 0)
        return os::never;
    const std::uint64_t seen = activity();
    if (seen != sampled_) {
        if (now - sampled_at_ < period) return os::never;
        sampled_ = seen;
        sampled_at_ = now;
        return is_long;
    }
    if (now - sampled_at_ < is_long) return is_long - (now - sampled_at_);
    if ((of_.is_wanted() || of_.next_deadline() != os::never) && search::set_runs_long(of_, true))
        search::ask_watcher(home);
    return os::never;
}

// A fiber that should have been stopped, and was not, has blocked the signal; or there is no clock;
// or the clock, which counts ticks, always finds it in the kernel, as in a loop of sched_yield().
// The processor goes on elsewhere, and the fiber runs on as the kernel thread that it is.
void processor_watch::end_time_slice(os::nanoseconds now, std::uint64_t seen) noexcept {
    const bool may_move = stop::end_time_slice(of_, seen);
    if (over_since_ == 0) over_since_ = now;
    carrier* c = of_.holder();
    if (!may_move || c == nullptr || of_.home().is_paused() ||
        now - over_since_ < of_.home().carriers.patience())
        return;
    bool was_marked = false;
    (void)hand_off::from(*c, seen, was_marked);
}

}  // namespace ums::sched
