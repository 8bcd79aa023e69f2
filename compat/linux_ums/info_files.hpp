// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/info_files.hpp: the module's tree of information, as files below the directory of the
// process's statistics. docs/linux-ums.md says which files there are and when they are written.

#include <cstdint>

namespace ums::linux_names::info_files {

// Writes the files if they are older than a second. A scheduler thread calls this without the lock;
// `now` is in nanoseconds.
void write_if_old(std::int64_t now) noexcept;
// Removes the files of a scheduler thread that has left, or of a handle that is closed and can no
// longer be found.
void forget(int handle, int thread) noexcept;
void forget(int handle) noexcept;

}  // namespace ums::linux_names::info_files
