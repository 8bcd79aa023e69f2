// SPDX-License-Identifier: MIT
#pragma once

// workers/worker/totals.hpp: counts of the whole process. The counts of schedulers that have left
// are kept here; those of entered schedulers are read from the schedulers.

#include "base/atomic.hpp"
#include "workers/worker/context.hpp"

namespace ums::scheduling {

class process_totals {
public:
    // relaxed, all: counts that readers only display.
    void scheduler_entered() noexcept { schedulers_.fetch_add(1, base::relaxed); }
    void scheduler_left(const context& c) noexcept {
        schedulers_.fetch_sub(1, base::relaxed);
        switches_.fetch_add(c.switches.get(), base::relaxed);
        yields_.fetch_add(c.count.yields.get(), base::relaxed);
        syscalls_.fetch_add(c.count.syscalls.get(), base::relaxed);
        faults_.fetch_add(c.count.faults.get(), base::relaxed);
    }
    void worker_made() noexcept { made_.fetch_add(1, base::relaxed); }
    void worker_ended() noexcept { ended_.fetch_add(1, base::relaxed); }

    void read(ums_scheduling_stats_t& into) const noexcept {
        into.switches = switches_.load(base::relaxed);
        into.yields = yields_.load(base::relaxed);
        into.blocked_in_syscall = syscalls_.load(base::relaxed);
        into.blocked_in_fault = faults_.load(base::relaxed);
        into.workers_created = made_.load(base::relaxed);
        into.workers_ended = ended_.load(base::relaxed);
        into.schedulers = schedulers_.load(base::relaxed);
        contexts.for_each([&into](handle, const context& c) {
            if (!is_scheduler(&c)) return;
            into.switches += c.switches.get();
            into.yields += c.count.yields.get();
            into.blocked_in_syscall += c.count.syscalls.get();
            into.blocked_in_fault += c.count.faults.get();
        });
    }

private:
    base::atomic<std::uint64_t> switches_, yields_, syscalls_, faults_, made_, ended_, schedulers_;
};

extern process_totals totals;

}  // namespace ums::scheduling
