// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/waiting_for.hpp: one wait, for sched/fiber/wait_mark.hpp.

#include "sched/fiber/fiber.hpp"

namespace ums::sched {

class waiting_for {
public:
    waiting_for(parkable& who, wait_kind kind, std::uint64_t what) noexcept
        : who_{who.is_fiber ? static_cast<fiber*>(&who) : nullptr} {
        if (who_ != nullptr) who_->mark.set(kind, what);
    }
    waiting_for(parkable& who, wait_kind kind, const void* object) noexcept
        : waiting_for{who, kind, reinterpret_cast<std::uint64_t>(object)} {}
    ~waiting_for() {
        if (who_ != nullptr) who_->mark.clear();
    }
    waiting_for(const waiting_for&) = delete;
    waiting_for& operator=(const waiting_for&) = delete;

private:
    fiber* const who_;
};

}  // namespace ums::sched
