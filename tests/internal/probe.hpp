// SPDX-License-Identifier: MIT
#pragma once

// internal/probe.hpp: for tests: asks the kernel about memory without touching it.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/memory.hpp"

namespace ums::mem {

// Whether a load from the address would succeed.
inline bool is_readable(const void* at) noexcept {
    int ends[2];
    if (::pipe(ends) != 0) return false;
    // A raw call, because a sanitizer would look at the memory first.
    const bool readable = ::syscall(SYS_write, ends[1], at, 1L) == 1;
    ::close(ends[0]);
    ::close(ends[1]);
    return readable;
}

// Whether the page of the address is in memory.
inline bool is_resident(const void* at) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(at) & ~(os::page_bytes - 1);
    unsigned char state = 0;
    return ::syscall(SYS_mincore, address, os::page_bytes, &state) == 0 && (state & 1) != 0;
}

}  // namespace ums::mem
