// SPDX-License-Identifier: MIT
#include "sched/block/watching.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "sched/block/hand_off.hpp"
#include "sched/block/stop.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

namespace {

// relaxed, all of them: statistics.
base::atomic<std::uint64_t> in_calls, in_faults, in_regions;

}  // namespace

void watching::add_to(runtime_stats& s) noexcept {
    s.blocked_in_calls += in_calls.load(base::relaxed);
    s.blocked_in_faults += in_faults.load(base::relaxed);
    s.blocked_in_regions += in_regions.load(base::relaxed);
    for (std::size_t i = 0; i < runtime_stats::notice_buckets; ++i)
        s.notice_us[i] += notices[i].load(base::relaxed);
}

void watching::forget() noexcept {
    for (auto* count : {&in_calls, &in_faults, &in_regions}) count->store(0, base::relaxed);
    for (auto& count : notices) count.store(0, base::relaxed);
    notice_ns.store(0, base::relaxed);
}

int processor::tid() const noexcept {
    const carrier* c = holder();
    return c != nullptr ? c->tid.get() : 0;
}

int processor::cpu() const noexcept {
    carrier* c = holder();
    return c != nullptr ? c->cpu.get() : -1;
}

bool processor::is_of_interest() const noexcept {
    const carrier* c = holder();
    return c != nullptr && c->running.get() != nullptr && c->proc.get() == this &&
           !c->is_stopping.get();
}

bool processor::on_block(const carry::notice& what) noexcept {
    carrier* c = holder();
    if (c == nullptr || c->tid.get() != what.tid) return false;
    bool marked = false;
    using result = hand_off::result;
    const result r = hand_off::from(*c, what.activity, marked, what.free_cpu);
    if (r == result::not_blocked) return false;
    if (r == result::refused) return true;
    auto& kind = marked ? in_regions : what.why == carry::cause::page_fault ? in_faults : in_calls;
    kind.fetch_add(1, base::relaxed);
    const auto ns = static_cast<std::uint64_t>(std::max(0L, os::now() - what.when));
    const auto bucket =
        std::min<std::size_t>(std::bit_width(ns / 1000), runtime_stats::notice_buckets - 1);
    watching::notices[bucket].fetch_add(1, base::relaxed);
    watching::notice_ns.fetch_add(ns, base::relaxed);
    return true;
}

os::nanoseconds processor::look_after(os::nanoseconds now) noexcept {
    carrier_pool& pool = home_.carriers;
    if (index_ == 0)
        // sync(follower): sees what it is for.
        if (auto* const on_look = watching::on_look.load(base::acquire)) on_look(now);
    // The first processor, which is never removed, looks after the fibers that wait for their turn.
    const os::nanoseconds next = index_ == 0 ? pool.release_if_stuck(now) : os::never;
    if (pool.time_slice == 0 || !is_of_interest()) return next;
    const std::uint64_t seen = activity();
    if (std::exchange(slice_of_, seen) != seen) {
        slice_began_ = now;
        slice_over_ = 0;
    }
    const os::nanoseconds ran = now - slice_began_;
    if (ran < pool.time_slice) return std::min(next, pool.time_slice - ran);
    slice_began_ = now;
    if (is_wanted())
        end_slice(now, seen);
    else
        slice_over_ = 0;
    return std::min(next, pool.time_slice);
}

// A fiber that should have been stopped, and was not, has blocked the signal; or there is no clock;
// or the clock, which counts ticks, always finds it in the kernel, as in a loop of sched_yield().
// The processor goes on elsewhere, and the fiber runs on as the kernel thread that it is.
void processor::end_slice(os::nanoseconds now, std::uint64_t seen) noexcept {
    const bool may_move = stop::end_slice(*this, seen);
    if (slice_over_ == 0) slice_over_ = now;
    carrier* c = holder();
    if (!may_move || c == nullptr || home_.is_paused() ||
        now - slice_over_ < home_.carriers.patience())
        return;
    bool was_marked = false;
    (void)hand_off::from(*c, seen, was_marked);
}

}  // namespace ums::sched
