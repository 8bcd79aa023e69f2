// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/fifo.hpp: one queue for all processors of a cluster, strictly first come, first served.
//
// The fairest and the simplest; every ready and every next takes one lock.

#include <memory>

#include "os/lock.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

class fifo_policy final : public policy {
public:
    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(fiber_ref f, unsigned processor) noexcept override;
    fiber_ref next(unsigned processor) noexcept override;
    bool empty(unsigned processor) const noexcept override;

private:
    mutable os::lock lock_{os::lock_rank::policy};
    // Guarded by lock_:
    fiber_queue queue_;
};

}  // namespace ums::sched
