// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/misuse.hpp: ends the program when a caller broke a precondition of an inline function.
//
// The functions in src/ use their own assertions. These are always on.

#include "ums/export.hpp"

namespace ums::impl {

// Prints the message and the name of the running fiber, and aborts. Not constexpr: a constant
// expression that gets here does not compile.
[[noreturn]] UMS_EXPORT void misuse(const char* message) noexcept;

}  // namespace ums::impl
