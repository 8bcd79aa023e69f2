// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/info_files.hpp: the module's tree of information, as files below the directory of the
// process's statistics. docs/linux-ums.md says which and when.

#include <cstdint>

namespace ums::linux_names::info_files {

// If they are older than a second. By a scheduler thread, without the lock; `now` in nanoseconds.
void write_if_old(std::int64_t now) noexcept;
// A scheduler thread has left; a handle is closed. It is not found any more.
void forget(int handle, int thread) noexcept;
void forget(int handle) noexcept;

}  // namespace ums::linux_names::info_files
