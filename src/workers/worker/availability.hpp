// SPDX-License-Identifier: MIT
#pragma once

// workers/worker/availability.hpp: whether workers can be switched on this machine.
//
// A switch loads the worker's thread pointer with WRFSBASE: the CPU must have the instruction
// (Intel since Ivy Bridge, AMD since Zen at the latest) and Linux must let user mode use it (since
// 5.9).

namespace ums::scheduling {

// What prevents workers from being switched here, in one line; null if nothing does.
[[nodiscard]] const char* what_is_missing() noexcept;

// Returns 0, or -EOPNOTSUPP if something is missing; the first call that fails says what is missing
// on standard error.
[[nodiscard]] int require_switching() noexcept;

// The text for ums_scheduling_mode().
[[nodiscard]] const char* describe_switching() noexcept;

}  // namespace ums::scheduling
