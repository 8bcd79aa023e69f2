// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/earliest_deadline.hpp: policy `earliest_deadline_first`: the ready fiber with the
// earliest deadline, and of equal ones the first that came.
//
// On one processor it meets all deadlines whenever any order does (Liu and Layland 1973), as far as
// fibers give way: a running fiber is not interrupted for a more urgent one before it yields,
// waits, or its time slice is over. A yield gives way to fibers whose deadline is as early or
// earlier; otherwise the caller continues.
//
// A fiber without a deadline counts as one that becomes due `patience` after it became ready. A
// fiber whose deadline has passed counts as one that is due when it becomes ready, so that it
// cannot hold up for ever those that came before.
//
// Bound: a ready fiber runs at the latest when its deadline, or its patience, is over, and the
// fibers that were due before it have run: those that become ready later come after it.
// Cost:  one lock for all processors and a look at the clock to make a fiber ready; one lock and,
//        on average, O(log n) to run it.

#include "os/clock.hpp"
#include "os/lock.hpp"
#include "sched/fiber/fiber.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

class earliest_deadline_policy final : public policy {
public:
    static constexpr os::nanoseconds patience = 1'000'000'000;
    using clock = os::nanoseconds (*)() noexcept;

    // `now` is for tests in simulated time.
    explicit earliest_deadline_policy(clock now = &os::now) noexcept : now_{now} {}

    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(fiber_ref f, unsigned processor) noexcept override;
    fiber_ref next(unsigned processor) noexcept override;
    fiber_ref instead_of(fiber_ref f, unsigned processor) noexcept override;
    bool empty(unsigned) const noexcept override { return size_.get() == 0; }

private:
    [[nodiscard]] std::uint64_t due(const fiber& f) const noexcept;

    const clock now_;
    os::lock lock_{os::lock_rank::policy};
    // Guarded by lock_:
    ordered_fiber_queue ready_;
    base::owned<std::size_t> size_;  // Others read it as a hint.
};

}  // namespace ums::sched
