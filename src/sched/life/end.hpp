// SPDX-License-Identifier: MIT
#pragma once

// sched/life/end.hpp: how a fiber ends.

#include <cstddef>

#include "base/atomic.hpp"

namespace ums::sched {

struct fiber;
struct parkable;
class processor;

// The last thing a fiber does: leaves its stack for good, and lets its joiner continue.
[[noreturn]] void end(fiber* self) noexcept;

// A fiber was discarded just when it ended: it begins anew, to drop what it keeps. Call it inside
// `p`.
void run_again_to_drop(fiber& f, processor& p) noexcept;

// Makes a joiner ready that a fiber's end, or a join that came too late, has taken. Call it inside
// `p`.
void let_go_on(parkable& joiner, processor& p, const fiber* ended) noexcept;

// Measure each ended fiber's stack. Set by the runtime's start.
extern bool measure_stacks;
extern base::atomic<std::size_t> stack_high_water;

}  // namespace ums::sched
