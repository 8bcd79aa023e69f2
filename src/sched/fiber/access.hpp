// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/access.hpp: connects the public fiber_ref and what it names.

#include "sched/fiber/fiber.hpp"
#include "ums/fiber_ref.hpp"

namespace ums::sched {

struct access {
    static fiber_ref ref(parkable* who) noexcept { return fiber_ref{who}; }
    static parkable* parkable_of(fiber_ref r) noexcept { return r.who_; }
    // Null for an empty reference, or a plain thread's.
    static fiber* fiber_of(fiber_ref r) noexcept {
        return r.who_ != nullptr && r.who_->is_fiber ? static_cast<fiber*>(r.who_) : nullptr;
    }
};

}  // namespace ums::sched
