// SPDX-License-Identifier: MIT
#pragma once

// os/memory.hpp: anonymous memory straight from the kernel.
//
// The scheduler does not use the application's allocator: it must work while a fiber is inside it.

#include <cstddef>
#include <sys/mman.h>

#include "os/system.hpp"

namespace ums::os {

inline constexpr std::size_t page_bytes = 4096;

// Returns null on failure. MAP_NORESERVE: address space costs nothing until it is touched.
inline void* map(std::size_t bytes) noexcept {
    const long at = system.mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    return at < 0 && at > -4096 ? nullptr : reinterpret_cast<void*>(at);
}

inline void unmap(void* at, std::size_t bytes) noexcept { system.munmap(at, bytes); }

constexpr std::size_t round_up(std::size_t n, std::size_t unit) noexcept {
    return (n + unit - 1) / unit * unit;
}

}  // namespace ums::os
