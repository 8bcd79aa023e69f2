// SPDX-License-Identifier: MIT
#include "sched/queue/depot.hpp"

namespace ums::sched {

mem::stack_depot& depot() noexcept {
    static constinit mem::stack_depot the_depot;
    return the_depot;
}

}  // namespace ums::sched
