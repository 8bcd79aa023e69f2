// SPDX-License-Identifier: MIT
#pragma once

// sched/life/recycle.hpp: returns an ended fiber's stack to where the next fiber takes it from.

#include "arch/sanitizer.hpp"
#include "sched/queue/depot.hpp"
#include "sched/run/here.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

UMS_ALWAYS_INLINE void vacate(fiber& f) noexcept {
    f.id.set(0);
    f.race.destroy();
    arch::happens_before(static_cast<mem::stack_head*>(&f));
    arch::poison(f.bottom(), static_cast<std::size_t>(reinterpret_cast<char*>(&f) - f.bottom()));
}

// The descriptor's stack goes to the calling processor's cache (if inside), or to the depot.
UMS_ALWAYS_INLINE void give_back(fiber& f, processor* inside) noexcept {
    vacate(f);
    if (inside != nullptr && inside->stacks.is_for(f)) [[likely]] {
        inside->stacks.put(f);
    } else {
        f.next_free = nullptr;
        depot().give(&f);
    }
}

// The usual way of give_back(), which calls no function. Returns false, without doing anything, for
// the others.
[[nodiscard]] UMS_ALWAYS_INLINE bool try_give_back(fiber& f, processor& inside) noexcept {
    if (!inside.stacks.is_for(f) || inside.stacks.is_full()) [[unlikely]]
        return false;
    vacate(f);
    inside.stacks.add(f);
    return true;
}

// Call it outside any ownership.
UMS_ALWAYS_INLINE void free_fiber(fiber& f, here at) noexcept {
    if (at.self == nullptr) return give_back(f, nullptr);
    processor* p = at.enter();
    give_back(f, p);
    if (p != nullptr) [[likely]]
        at.leave();
}

}  // namespace ums::sched
