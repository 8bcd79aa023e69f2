// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/built_in.hpp: the policies that are chosen by name.

#include <span>
#include <string_view>

#include "ums/options.hpp"

namespace ums::sched {

struct built_in_policy {
    policy_kind kind;
    const char* name;
    const char* what;  // For `ums info`.
    std::unique_ptr<policy> (*make)();
};

// Returns the policies in the order of their kinds.
[[nodiscard]] std::span<const built_in_policy> built_in_policies() noexcept;
[[nodiscard]] bool is_built_in(policy_kind kind) noexcept;

}  // namespace ums::sched
