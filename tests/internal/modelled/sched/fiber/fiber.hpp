// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/fiber/fiber.hpp: a fiber whose body is a number of steps, so that
// any strand may continue it.

#include "arch/context.hpp"
#include "sched/fiber/parkable.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

class cluster;

// Data that only the fiber itself touches, and code with a claim on its carrier: accessing it is no
// step of the search.
template <class T>
class note {
public:
    [[nodiscard]] T get() const noexcept { return value_; }
    void set(T v) noexcept { value_ = v; }

private:
    T value_{};
};

struct fiber : parkable {
    explicit fiber(cluster& home, unsigned n) noexcept : parkable{true}, number{n} {
        home_cluster.set(&home);
    }

    struct {
        note<std::uint32_t> depth, uninterruptible;
        note<bool> stop_wanted;
        [[nodiscard]] bool holds_permit() const noexcept { return depth.get() != 0; }
    } blocks;
    note<cluster*> home_cluster;
    note<std::uint64_t> id;
    arch::context context;
    arch::stack_shadow shadow;
    arch::race_context race;

    const unsigned number;
    unsigned stage = 0;  // Where its body continues.
    bool is_done = false;
    bool is_seen = false;                                   // A detector saw it as the blocked one.
    tso::model::cell runs = tso::model::running().make(0);  // On how many strands it runs.
    tso::model::cell queued = tso::model::running().make(0);  // How often it is in the queue.
};

}  // namespace ums::sched
