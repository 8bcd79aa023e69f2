// SPDX-License-Identifier: MIT
#pragma once

// os/foreign.hpp: reads memory of this process that may be gone, or may change meanwhile.
//
// The kernel copies, so a missing page is an error instead of a fault, and no sanitizer interferes.
// Where process_vm_readv(2) is refused (a seccomp filter), the bytes go through a pipe. Cost: a
// system call; through a pipe four.

#include <cstddef>

namespace ums::os {

// Returns false if not all of it can be read.
[[nodiscard]] bool read_foreign(const void* at, void* into, std::size_t bytes) noexcept;

}  // namespace ums::os
