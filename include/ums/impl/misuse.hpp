// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/misuse.hpp: what an inline function calls when its caller broke a precondition.

#include "ums/export.hpp"

namespace ums::impl {

// Prints the message and who runs, and aborts. Not constexpr: a constant expression that gets here
// does not compile.
[[noreturn]] UMS_EXPORT void misuse(const char* message) noexcept;

}  // namespace ums::impl
