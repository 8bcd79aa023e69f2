// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/view.hpp: what a scheduler thread was given when it last asked for the ready workers.
//
// The program gets all of them each time, though it often executes one and asks again. So the
// thread keeps what it was given and only adds what has become ready since: the list's workers are
// in the order of their tickets, and the view knows the last one it has seen. A worker that another
// thread has executed since is found to be out of date when it comes to the head, or when the
// program tries it. A view that is mostly out of date is made anew.

#include <unordered_map>
#include <vector>

#include "linux_ums/registry.hpp"

namespace ums::linux_names {

class view {
public:
    // Returns null if no worker is ready. Requires: the lock.
    completion_list_data* refresh(const list& of);
    // Leaves out a worker that is executed, or was found not to be ready. The program may still
    // walk over it.
    void leave_out(ums_pid_t pid);

private:
    struct item {
        ums_worker_thread_data shown{};
        std::uint64_t ticket = 0;
        item *before = nullptr, *after = nullptr;
    };
    using items = std::unordered_map<ums_pid_t, item>;

    void append(const worker& w);
    void unlink(item& i);

    items items_;
    std::vector<items::node_type> left_out_;  // Until the program asks again.
    item *first_ = nullptr, *last_ = nullptr;
    std::uint64_t seen_ = 0;  // The last ticket.
    completion_list_data shown_{};
};

}  // namespace ums::linux_names
