// SPDX-License-Identifier: MIT
#include "io/wait/give_way.hpp"

#include "sched/run/here.hpp"
#include "ums/this_fiber.hpp"

namespace ums::io {

bool give_way(bool looks) noexcept {
    const sched::here at;
    if (at.self == nullptr || at.at() == nullptr) return false;
    if (looks) {
        if (sched::processor* const p = at.enter()) {
            p->ready.end_soon();  // A processor looks for events as a round ends.
            at.leave();
        }
    }
    return this_fiber::try_yield();
}

}  // namespace ums::io
