// SPDX-License-Identifier: MIT
#pragma once

// os/thread/at_rest.hpp: counts the kernel threads of this process that will do nothing of
// themselves: the runtime's own while they wait for work, and plain threads that wait in a call of
// the library without limit. If these are all, only the scheduler, a deadline or a descriptor can
// go on (runtime/standstill.hpp).

#include "base/atomic.hpp"

namespace ums::os {

class at_rest {
public:
    at_rest() noexcept { count_.fetch_add(1, base::seq_cst); }
    ~at_rest() { count_.fetch_sub(1, base::seq_cst); }
    at_rest(const at_rest&) = delete;
    at_rest& operator=(const at_rest&) = delete;

    // Whether no other kernel thread is in this process. One that has just begun or ended may be
    // counted wrongly. False if /proc cannot be read. Cost: a system call.
    [[nodiscard]] static bool are_all() noexcept;

    // In the child of a fork(): there is one thread, which is not at rest.
    static void leave_behind() noexcept { count_.store(0, base::relaxed); }

private:
    static constinit base::atomic<unsigned> count_;
};

}  // namespace ums::os
