// SPDX-License-Identifier: MIT
#pragma once

// capi/policy.hpp: a policy made of C functions.

#include <functional>
#include <memory>

#include "ums/options.hpp"
#include "ums/policy.hpp"
#include "ums/ums.h"

namespace ums::capi {

// Returns 0, or a negative error number.
int check_policy(const ums_policy_calls_t* given, ums_policy_t kind) noexcept;

// Empty if `given` is null. Requires: check_policy() accepted them.
std::function<std::unique_ptr<policy>()> policy_maker(const ums_policy_calls_t* given,
                                                      void* argument);

// Requires: check_policy() accepted it.
inline policy_kind to_kind(ums_policy_t kind) noexcept { return static_cast<policy_kind>(kind); }

}  // namespace ums::capi
