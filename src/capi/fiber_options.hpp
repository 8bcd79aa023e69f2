// SPDX-License-Identifier: MIT
#pragma once

// capi/fiber_options.hpp: the options of a fiber, from C.

#include <cstddef>

#include "capi/call.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"

namespace ums::capi {

// Returns 0, or a negative error number. The name stays the caller's.
inline int to_options(fiber_options& to, const ums_fiber_options_t* given) noexcept {
    constexpr std::size_t smallest = offsetof(ums_fiber_options_t, priority);
    ums_fiber_options_t o = UMS_FIBER_OPTIONS_INIT;
    if (const int error = copy_sized(o, given, smallest); error != 0) return error;
    if (!is_kind(o.launch, UMS_LAUNCH_DISPATCH)) return -EINVAL;
    to = {.name = o.name != nullptr ? o.name : "",
          .stack_bytes = o.stack_bytes,
          .pinned = o.pinned,
          .cluster = reinterpret_cast<cluster*>(o.cluster),
          .launch = o.launch == UMS_LAUNCH_DISPATCH ? launch::dispatch : launch::post,
          .tag = o.tag,
          .priority = o.priority,
          // Zero in both means: a struct that the caller set to zero, except for the size.
          .deadline = to_deadline(o.deadline != 0 ? o.deadline : UMS_NEVER),
          .weight = o.weight != 0 ? o.weight : usual_weight,
          .group = o.group};
    return 0;
}

}  // namespace ums::capi
