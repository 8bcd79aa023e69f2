// SPDX-License-Identifier: MIT
#pragma once

// rt/settings.hpp: the options in force: what the program chose, overridden by the environment.

#include <string>

#include "carry/detector.hpp"
#include "mem/guard.hpp"
#include "ums/options.hpp"

namespace ums::rt {

struct settings {
    options chosen;         // Includes the number of processors.
    mem::guard_kind guard;  // What `automatic` became.
    const char* guard_reason;
    std::string processors_reason;  // Why there are so many.
};

// Reads UMS_* and checks everything. If a variable does not parse, this ends the program with exit
// code 2. Throws std::system_error(invalid_argument) for an option out of range, or
// (operation_not_supported) for a guard that the kernel cannot make.
settings settle(const options& asked);

// Throws std::system_error(invalid_argument).
void check_slice(std::uint32_t us);

[[nodiscard]] carry::preference detection_of(const options& o) noexcept;

}  // namespace ums::rt
