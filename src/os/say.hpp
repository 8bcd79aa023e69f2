// SPDX-License-Identifier: MIT
#pragma once

// os/say.hpp: writes one line to standard error, for the user at three in the morning.
//
// It neither allocates nor takes a lock, because a fiber that holds either may be stopped or
// blocked.

namespace ums::os {

// Writes "ums: ", the text and a newline, by one write(2). Cut at 500 characters.
void say(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

}  // namespace ums::os
