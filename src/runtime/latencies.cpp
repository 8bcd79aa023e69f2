// SPDX-License-Identifier: MIT
#include "runtime/latencies.hpp"

#include <algorithm>
#include <utility>

#include "arch/time_stamp.hpp"
#include "os/clock.hpp"
#include "sched/fiber/wait_record.hpp"

namespace ums::rt {

using sched::trace_event;
using sched::trace_record;
using sched::trace_ring;
using sched::tracing;

namespace {

// For all rings together: some milliseconds of work.
constexpr std::uint64_t most_at_once = 64 * 1024;

bool is_lock(std::uint64_t waits) {
    const auto kind = static_cast<sched::wait_kind>(waits >> sched::wait_record::kind_shift);
    return kind == sched::wait_kind::mutex || kind == sched::wait_kind::shared_mutex ||
           kind == sched::wait_kind::shared_mutex_shared;
}

// 0: nothing was ever recorded.
double measure_stamps() {
    const std::uint64_t began = tracing.began_stamp.load(base::relaxed);
    const os::nanoseconds ns = os::now() - tracing.began_ns.load(base::relaxed);
    const std::uint64_t stamp = arch::time_stamp();
    return began == 0 || stamp <= began || ns <= 0
               ? 0
               : static_cast<double>(ns) / static_cast<double>(stamp - began);
}

}  // namespace

// Copies the records from `first` on, as far as they were not overwritten meanwhile.
void latencies::copy(const trace_ring& r, place& at, std::uint64_t first, std::uint64_t count) {
    const std::size_t before = new_.size();
    for (std::uint64_t i = first; i < count; ++i) {
        const trace_record& from = r.records[i & r.mask];
        // sync(trace): see sched/record/trace.hpp for how a reader tells which records are whole.
        new_.push_back({from.when.load(base::acquire), from.what.load(base::acquire),
                        from.argument.load(base::acquire), from.other.load(base::acquire), &at});
    }
    const std::uint64_t after = r.count.load(base::acquire) + 1;  // sync(trace)
    const std::uint64_t whole = after > r.mask + 1 ? after - (r.mask + 1) : 0;
    const std::uint64_t torn = whole > first ? std::min(whole, count) - first : 0;
    const auto begin = new_.begin() + static_cast<std::ptrdiff_t>(before);
    new_.erase(begin, begin + static_cast<std::ptrdiff_t>(torn));
}

// Returns whether nothing is missing between what was read before and now.
bool latencies::read(const trace_ring& r, place& at, std::uint64_t most) {
    const std::uint64_t count = r.count.load(base::acquire);     // sync(trace)
    const std::uint64_t begun = r.begun_at.load(base::relaxed);  // relaxed: ordered by count.
    if (count == begun) return true;  // The ring begins, and has no record of it yet.
    // The ring of the threads without a processor is made for its first record.
    const bool begins = r.processor != trace_ring::outside && (at.is_new || at.begun_at != begun);
    const std::uint64_t wanted = std::max(at.next, begun);
    const std::uint64_t first = count - std::min({count - wanted, most, r.mask});
    const std::size_t before = new_.size();
    copy(r, at, first, count);
    const std::size_t n = new_.size() - before;
    at = {.next = count, .begun_at = begun, .running = at.running, .is_new = false};
    missed += count - wanted - n;
    if (!begins && n == count - wanted) return true;
    known_from_ = std::max(known_from_, n != 0 ? new_[before].when : arch::time_stamp());
    return false;
}

// The same for all rings.
bool latencies::read_all() {
    // sync(trace): sees the rings.
    const trace_ring* const newest = tracing.rings.load(base::acquire);
    std::size_t rings = 0;
    for (const trace_ring* r = newest; r != nullptr; r = r->next.load(base::relaxed), ++rings)
        places_[r];
    if (rings == 0) return true;
    const std::uint64_t most = most_at_once / rings + 1;
    new_.reserve(new_.size() + rings * most);
    bool is_whole = true;
    for (const trace_ring* r = newest; r != nullptr; r = r->next.load(base::relaxed))
        if (!read(*r, places_[r], most)) is_whole = false;
    return is_whole;
}

void latencies::forget() {
    fibers_.clear();
    for (auto& [ring, at] : places_) at.running = 0;
}

void latencies::follow(std::uint64_t until) {
    ns_per_stamp_ = measure_stamps();
    if (ns_per_stamp_ == 0) return;
    if (!std::exchange(is_whole_, false)) {
        known_from_ = arch::time_stamp();
        new_.clear();
        forget();
    }
    if (!read_all()) forget();
    std::sort(new_.begin(), new_.end(),
              [](const event& a, const event& b) { return a.when < b.when; });
    auto e = new_.cbegin();
    for (; e != new_.cend() && e->when <= until; ++e) {
        const bool is_known = e->when >= known_from_;
        ++(is_known ? records : missed);
        if (is_known) add(*e);
    }
    new_.erase(new_.cbegin(), e);
    is_whole_ = true;
}

void latencies::runs(place& at, std::uint64_t id, std::uint64_t when) {
    at.running = id;
    if (id == 0) return;
    state& f = fibers_[id];
    const auto since = [&](std::uint64_t begin) -> std::uint64_t {
        if (when <= begin) return 0;  // The clocks of two CPUs may differ by a little.
        return static_cast<std::uint64_t>(static_cast<double>(when - begin) * ns_per_stamp_);
    };
    if (f.ready != 0) {
        in_queue.add(since(f.ready));
        if (f.was_woken) woken_to_run.add(since(f.ready));
    }
    if (f.parked != 0 && f.is_for_lock) for_locks.add(since(f.parked));
    f = {};
}

void latencies::leaves(const event& e, std::uint64_t id, const state& now) {
    fibers_[id] = now;
    runs(*e.at, e.other, e.when);
}

void latencies::add(const event& e) {
    const auto what = static_cast<trace_event>(e.what >> trace_record::event_shift);
    const std::uint64_t id = e.what & ((std::uint64_t{1} << trace_record::event_shift) - 1);
    switch (what) {
        case trace_event::run:
            // The fiber that ran before has yielded, or a record has said otherwise.
            if (const std::uint64_t before = e.at->running; before != 0 && before != id)
                fibers_[before] = {.ready = e.when};
            return runs(*e.at, id, e.when);
        case trace_event::yield:
        case trace_event::migrate:
            return leaves(e, id, {.ready = e.when});
        case trace_event::park:
            return leaves(e, id, {.parked = e.when, .is_for_lock = is_lock(e.argument)});
        case trace_event::end:
            fibers_.erase(id);
            return runs(*e.at, e.other, e.when);
        case trace_event::stop:
            fibers_[id] = {.ready = e.when};
            e.at->running = 0;
            return;
        case trace_event::hand_off:  // The processor moves on without it.
            fibers_.erase(id);
            e.at->running = 0;
            return;
        case trace_event::back:  // It waits for a processor.
            fibers_[id] = {.ready = e.when};
            return;
        case trace_event::spawn:
        case trace_event::unpark:
        case trace_event::timer:
        case trace_event::io: {
            state& f = fibers_[id];
            if (f.ready == 0) f.ready = e.when;
            f.was_woken = true;
            return;
        }
        default:
            return;
    }
}

}  // namespace ums::rt
