// SPDX-License-Identifier: MIT
#include "io/wait/give_way.hpp"

#include "sched/run/here.hpp"
#include "ums/this_fiber.hpp"

namespace ums::io {

bool give_way(bool looks) noexcept {
    const sched::here at;
    if (at.self == nullptr || at.at() == nullptr) return false;
    // A section may hold what the policy or the others want, and its program knows that a call that
    // need not wait does not switch; a marked region would lose its mark. And to leave a carrier
    // that its fiber keeps costs more than is gained.
    if (at.self->blocks.uninterruptible.get() != 0 || at.self->blocks.holds_permit() ||
        at.on->is_kept.get())
        return false;
    if (looks) {
        if (sched::processor* const p = at.enter()) {
            p->look_soon();
            at.leave();
        }
    }
    return this_fiber::try_yield();
}

}  // namespace ums::io
