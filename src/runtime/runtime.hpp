// SPDX-License-Identifier: MIT
#pragma once

// runtime/runtime.hpp: the objects that exist while a runtime runs.

#include <memory>
#include <optional>

#include "runtime/carrier_watch.hpp"
#include "runtime/cpu_follower.hpp"
#include "runtime/settings.hpp"
#include "sched/run/cluster.hpp"
#include "ums/cluster.hpp"

namespace ums::rt {

struct running_runtime {
    settings set;
    std::optional<carrier_watch> watch;  // Made before the clusters, and destroyed after them.
    std::unique_ptr<sched::cluster> standard;
    base::atomic<unsigned> clusters;       // The application's own.
    std::optional<cpu_follower> follower;  // Ends before `standard` is stopped, and goes after.
    // If fork() has made it (runtime/fork.cpp): that of the process that did. Never deleted.
    running_runtime* parents = nullptr;
};

// Null if no runtime runs.
running_runtime* current() noexcept;
// For runtime/fork.cpp, in the child: it takes the place of the parent's.
void replace(running_runtime* by) noexcept;

// Makes the default cluster as `r.set` says; it is not started. Requires: r.watch is set.
void make_standard(running_runtime& r);

// Whether the caller is a fiber on which exit() destroys `object`, a static one.
bool is_ending_with_process(const void* object) noexcept;

// What cluster::standard() returns. Set at each start.
ums::cluster& standard_name() noexcept;

std::unique_ptr<ums::policy> make_policy(policy_kind kind,
                                         const std::function<std::unique_ptr<ums::policy>()>& own);

}  // namespace ums::rt
