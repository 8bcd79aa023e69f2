// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/urgent_first.hpp: policy `priority`: the most urgent ready fiber first, and of
// equal ones the first that came.
//
// The less urgent are not starved: a level with ready fibers that is passed over `budget` times has
// the next turn. A yield gives way to equally urgent and more urgent fibers, or to a level whose
// turn it is; otherwise the caller continues.
//
// A fiber that holds a mutex is as urgent as the most urgent waiter for it
// (sched/lock/urgency.hpp). If it is ready when it becomes more urgent, it is moved to the back of
// the higher level.
//
// Bound: a ready fiber with n others before it at its level runs after at most (n + 1) * (budget +
// 8) switches.
// Cost:  one lock for all processors to make a fiber ready, one to run it. raised(): the fibers of
//        one level.

#include <array>

#include "os/lock.hpp"
#include "sched/fiber/fiber.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

class urgent_first_policy final : public policy {
public:
    static constexpr unsigned budget = 64;

    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(fiber_ref f, unsigned processor) noexcept override;
    fiber_ref next(unsigned processor) noexcept override;
    fiber_ref instead_of(fiber_ref f, unsigned processor) noexcept override;
    bool empty(unsigned) const noexcept override { return size_.get() == 0; }
    void raised(fiber_ref f) noexcept override;
    bool has_priorities() const noexcept override { return true; }

private:
    static constexpr unsigned levels = most_priority - least_priority + 1;

    [[nodiscard]] static unsigned level_of(const fiber& f) noexcept {
        return static_cast<unsigned>(f.wanted.effective_priority() - least_priority);
    }
    [[nodiscard]] unsigned choose(unsigned least) noexcept;
    [[nodiscard]] fiber_ref take(unsigned level) noexcept;

    os::lock lock_{os::lock_rank::policy};
    // Guarded by lock_:
    std::array<fiber_queue, levels> ready_;
    std::array<unsigned, levels> passed_over_{};
    base::owned<std::size_t> size_;  // Others read it as a hint.
};

}  // namespace ums::sched
