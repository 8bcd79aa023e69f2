// SPDX-License-Identifier: MIT
#pragma once

// os/system.hpp: the one table of system calls.
//
// Every system call of the runtime goes through it, so that tests and the simulator can put a
// failing or a simulated call in its place. Each function returns what the kernel does: a value, or
// -errno. None is on the path of a fiber's switch.

#include <cstddef>
#include <cstdint>
#include <ctime>

struct iovec;
struct perf_event_attr;

namespace ums::os {

struct system_calls {
    long (*mmap)(void* at, std::size_t bytes, int protection, int flags) noexcept;
    long (*munmap)(void* at, std::size_t bytes) noexcept;
    long (*mremap)(void* at, std::size_t bytes, std::size_t new_bytes) noexcept;
    long (*mprotect)(void* at, std::size_t bytes, int protection) noexcept;
    long (*madvise)(void* at, std::size_t bytes, int advice) noexcept;
    // Advises the same for each of `n` ranges of this process, in order, in one call
    // (process_madvise, Linux 6.15 for any advice). Returns how many bytes were advised, or -errno
    // if none were.
    long (*madvise_many)(const iovec* ranges, std::size_t n, int advice) noexcept;
    long (*mincore)(void* at, std::size_t bytes, unsigned char* pages) noexcept;
    long (*membarrier)(int command) noexcept;
    // Opens an event that closes on exec; and makes a request to it (PERF_EVENT_IOC_*).
    long (*perf_event_open)(perf_event_attr* wanted, int tid, int cpu) noexcept;
    long (*perf_control)(int fd, unsigned long request, unsigned long argument) noexcept;
    // Makes what happens at `fd` send `signal` to the thread `tid` (F_SETOWN_EX, F_SETSIG,
    // O_ASYNC).
    long (*signal_from)(int fd, int tid, int signal) noexcept;
    // A timer that sends `signal` with `value` to one thread, by any clock, such as that thread's
    // CPU clock. It is armed once by a number of nanoseconds from now, and disarmed by 0.
    long (*thread_timer_create)(int clock, int tid, int signal, void* value, int* id) noexcept;
    long (*thread_timer_arm)(int id, long ns) noexcept;
    long (*thread_timer_delete)(int id) noexcept;
    // Blocks a signal in the calling thread, also one that the C library keeps for itself. Waits
    // until such a signal comes, or for no longer than `limit` (null: none), and takes it.
    long (*signal_block)(int signal) noexcept;
    long (*signal_wait)(int signal, const timespec* limit) noexcept;
    long (*signal_thread)(int tid, int signal) noexcept;
    // For files that are only read, from offset 0.
    long (*open_to_read)(const char* path) noexcept;
    long (*open_at)(int folder, const char* path) noexcept;
    long (*read_from_start)(int fd, void* into, std::size_t bytes) noexcept;
    long (*close_fd)(int fd) noexcept;
    // Which file a descriptor is, to compare with a later answer; 0: it is none.
    std::uint64_t (*identity_of)(int fd) noexcept;
    // An eventfd whose reads and writes do not wait; the last call adds one to its count.
    long (*event_make)() noexcept;
    long (*event_raise)(int fd) noexcept;
    // FUTEX_WAIT with an absolute CLOCK_MONOTONIC limit (null: none); FUTEX_WAKE.
    long (*futex_wait)(const void* word, unsigned expected, const timespec* limit) noexcept;
    long (*futex_wake)(const void* word, int waiters) noexcept;
    long (*clock_monotonic)(timespec* now) noexcept;
    // process_vm_readv of this process; and the same through a pipe, for at most a page. Return how
    // many bytes were read.
    long (*read_own_memory)(const void* at, void* into, std::size_t bytes) noexcept;
    long (*read_through_pipe)(const void* at, void* into, std::size_t bytes) noexcept;
    // Returns a second descriptor of the same file.
    long (*duplicate)(int fd) noexcept;
    // Sets the calling thread's mask: 64 signals, including the C library's own. `old` may be null.
    long (*signal_mask)(const std::uint64_t* mask, std::uint64_t* old) noexcept;
    long (*rseq_unregister)(void* area, unsigned bytes, unsigned signature) noexcept;
    long (*rseq_register)(void* area, unsigned bytes, unsigned signature) noexcept;
    // What the kernel told this process at its start (getauxval); 0: nothing of that type.
    unsigned long (*auxiliary_value)(unsigned long type) noexcept;
};

// The calls that the kernel serves.
extern const system_calls kernel_calls;

// The table in use. Replace it only while no runtime is running.
extern system_calls system;

}  // namespace ums::os
