// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/global_fifo.hpp: one queue for all processors of a cluster, in order of arrival.
//
// A processor that has nothing takes a batch: its share of what is queued, at most 64, so that the
// lock of the queue is taken once for many fibers. The batch waits at that processor; others that
// find the queue empty take from there, one by one. A single processor keeps the order of arrival
// strictly; several keep it within about a batch.
//
// Bound: a ready fiber runs after those that came before it, and at most a batch for each other
// processor.
// Cost:  one lock to make a fiber ready, one to run it: the queue's, and the processor's own.

#include "base/cache_line.hpp"
#include "os/lock.hpp"
#include "sched/policies/per_processor.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

class global_fifo_policy final : public policy {
public:
    void attach(unsigned processor) override { places_.attach(processor); }
    void detach(unsigned processor) override;
    void ready(fiber_ref f, unsigned processor) noexcept override;
    fiber_ref next(unsigned processor) noexcept override;
    fiber_ref steal(unsigned thief, unsigned victim) noexcept override;
    bool empty(unsigned processor) const noexcept override;

private:
    static constexpr std::size_t most_taken = 64;

    struct alignas(base::cache_line) place {
        os::lock lock{os::lock_rank::policy};
        // Guarded by `lock`:
        fiber_queue batch;
        // Others read them as hints:
        base::owned<std::size_t> size;  // Guarded by `lock`.
        // Owned by the processor: fibers are on their way from the queue to the batch.
        base::owned<bool> is_taking;
    };

    [[nodiscard]] static fiber_ref take(place& from) noexcept;

    per_processor<place> places_;

    mutable os::lock lock_{os::lock_rank::policy};
    // Guarded by lock_:
    fiber_queue queue_;
    base::owned<std::size_t> size_;  // Others read it as a hint.
};

}  // namespace ums::sched
