// SPDX-License-Identifier: MIT
#pragma once

// os/system.hpp: the one table of system calls.
//
// Every system call of the runtime goes through it, so that tests and the simulator can put a
// failing or a simulated call in its place. Each returns what the kernel does: a value, or -errno.
// None is on a path that a fiber's switch takes.

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace ums::os {

struct system_calls {
    long (*mmap)(void* at, std::size_t bytes, int protection, int flags) noexcept;
    long (*munmap)(void* at, std::size_t bytes) noexcept;
    long (*mremap)(void* at, std::size_t bytes, std::size_t new_bytes) noexcept;
    long (*mprotect)(void* at, std::size_t bytes, int protection) noexcept;
    long (*madvise)(void* at, std::size_t bytes, int advice) noexcept;
    long (*mincore)(void* at, std::size_t bytes, unsigned char* pages) noexcept;
    long (*membarrier)(int command) noexcept;
    // FUTEX_WAIT with an absolute CLOCK_MONOTONIC limit (null: none); FUTEX_WAKE.
    long (*futex_wait)(const void* word, unsigned expected, const timespec* limit) noexcept;
    long (*futex_wake)(const void* word, int waiters) noexcept;
    long (*clock_monotonic)(timespec* now) noexcept;
    // process_vm_readv of this process; the same by way of a pipe, for at most a page. How many bytes.
    long (*read_own_memory)(const void* at, void* into, std::size_t bytes) noexcept;
    long (*read_through_pipe)(const void* at, void* into, std::size_t bytes) noexcept;
    // An event to poll for, whose reads and writes do not wait; sets it; a second descriptor of it.
    long (*event_create)() noexcept;
    long (*event_signal)(int fd) noexcept;
    long (*duplicate)(int fd) noexcept;
    long (*close_fd)(int fd) noexcept;
    // Sets the calling thread's mask, 64 signals, the C library's own included. `old` may be null.
    long (*signal_mask)(const std::uint64_t* mask, std::uint64_t* old) noexcept;
    long (*rseq_unregister)(void* area, unsigned bytes, unsigned signature) noexcept;
};

// The kernel's own.
extern const system_calls kernel_calls;

// The table in use. Replace it only while no runtime is running.
extern system_calls system;

}  // namespace ums::os
