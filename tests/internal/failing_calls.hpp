// SPDX-License-Identifier: MIT
#pragma once

// internal/failing_calls.hpp: for tests: system calls that fail on demand.
//
// While a failing_calls exists, it counts the calls through os::system and the bytes they map, and
// makes those calls fail that fail() asks for. Make it before a runtime starts, and destroy it
// after; fail() and heal() may be called while one runs. Only one may exist at a time.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>

#include "os/system.hpp"

namespace ums::os {

class failing_calls {
public:
    enum call {
        mmap,
        munmap,
        mremap,
        mprotect,
        madvise,
        madvise_many,
        mincore,
        membarrier,
        perf_event_open,
        thread_timer_create,
        thread_timer_arm,
        signal_block,
        signal_wait,
        open_to_read,
        open_at,
        event_make,
        calls
    };

    failing_calls() noexcept {
        heal();
        for (auto& n : made_) n = 0;
        mapped_ = 0;
        least_mapping_ = 0;
        system_calls table = kernel_calls;
        table.mmap = [](void* at, std::size_t bytes, int protection, int flags) noexcept {
            if (bytes >= least_mapping_)
                if (const long error = due(mmap)) return error;
            const long result = kernel_calls.mmap(at, bytes, protection, flags);
            // MAP_FIXED replaces what is mapped there.
            if ((result >= 0 || result <= -4096) && (flags & MAP_FIXED) == 0)
                mapped_ += static_cast<long>(bytes);
            return result;
        };
        table.munmap = [](void* at, std::size_t bytes) noexcept {
            if (const long error = due(munmap)) return error;
            const long result = kernel_calls.munmap(at, bytes);
            if (result == 0) mapped_ -= static_cast<long>(bytes);
            return result;
        };
        table.mremap = [](void* at, std::size_t bytes, std::size_t new_bytes) noexcept {
            if (const long error = due(mremap)) return error;
            const long result = kernel_calls.mremap(at, bytes, new_bytes);
            if (result >= 0 || result <= -4096)
                mapped_ += static_cast<long>(new_bytes) - static_cast<long>(bytes);
            return result;
        };
        table.mprotect = [](void* at, std::size_t bytes, int protection) noexcept {
            const long error = due(mprotect);
            return error != 0 ? error : kernel_calls.mprotect(at, bytes, protection);
        };
        table.madvise = [](void* at, std::size_t bytes, int advice) noexcept {
            const long error = due(madvise);
            return error != 0 ? error : kernel_calls.madvise(at, bytes, advice);
        };
        table.madvise_many = [](const iovec* ranges, std::size_t n, int advice) noexcept {
            const long error = due(madvise_many);
            return error != 0 ? error : kernel_calls.madvise_many(ranges, n, advice);
        };
        table.mincore = [](void* at, std::size_t bytes, unsigned char* pages) noexcept {
            const long error = due(mincore);
            return error != 0 ? error : kernel_calls.mincore(at, bytes, pages);
        };
        table.membarrier = [](int command) noexcept {
            const long error = due(membarrier);
            return error != 0 ? error : kernel_calls.membarrier(command);
        };
        table.perf_event_open = [](perf_event_attr* wanted, int tid, int cpu) noexcept {
            const long error = due(perf_event_open);
            return error != 0 ? error : kernel_calls.perf_event_open(wanted, tid, cpu);
        };
        table.thread_timer_create = [](int clock, int tid, int signal, void* value,
                                       int* id) noexcept {
            const long error = due(thread_timer_create);
            return error != 0 ? error
                              : kernel_calls.thread_timer_create(clock, tid, signal, value, id);
        };
        table.thread_timer_arm = [](int id, long ns) noexcept {
            const long error = due(thread_timer_arm);
            return error != 0 ? error : kernel_calls.thread_timer_arm(id, ns);
        };
        table.signal_block = [](int signal) noexcept {
            const long error = due(signal_block);
            return error != 0 ? error : kernel_calls.signal_block(signal);
        };
        table.signal_wait = [](int signal, const timespec* limit) noexcept {
            const long error = due(signal_wait);
            return error != 0 ? error : kernel_calls.signal_wait(signal, limit);
        };
        table.event_make = []() noexcept {
            const long error = due(event_make);
            return error != 0 ? error : kernel_calls.event_make();
        };
        table.open_to_read = [](const char* path) noexcept {
            const long error = due(open_to_read);
            return error != 0 ? error : kernel_calls.open_to_read(path);
        };
        table.open_at = [](int folder, const char* path) noexcept {
            const long error = due(open_at);
            return error != 0 ? error : kernel_calls.open_at(folder, path);
        };
        system = table;
    }
    ~failing_calls() { system = kernel_calls; }
    failing_calls(const failing_calls&) = delete;
    failing_calls& operator=(const failing_calls&) = delete;

    // From now on the nth call (1: the next) fails with -error, and so do those after it until
    // `times` have failed.
    void fail(call which, std::uint64_t nth, std::uint64_t times = ~std::uint64_t{0},
              int error = ENOMEM) noexcept {
        error_[which] = error;
        first_[which] = made_[which] + nth;
        last_[which] = times > ~std::uint64_t{0} - first_[which] ? ~std::uint64_t{0}
                                                                 : first_[which] + times - 1;
    }

    // Smaller mappings are not counted and do not fail.
    void count_mappings_from(std::size_t bytes) noexcept { least_mapping_ = bytes; }

    // From now on no call fails.
    void heal() noexcept {
        for (auto& n : last_) n = 0;
    }

    [[nodiscard]] std::uint64_t made(call which) const noexcept { return made_[which]; }
    [[nodiscard]] long mapped_bytes() const noexcept { return mapped_; }

private:
    // The error that the present call must fail with, or 0.
    static long due(call which) noexcept {
        const std::uint64_t n = ++made_[which];
        return n >= first_[which] && n <= last_[which] ? -error_[which] : 0;
    }

    // The functions in the table capture nothing. For tests, std::atomic's default order is good
    // enough.
    static inline std::atomic<std::uint64_t> made_[calls], first_[calls], last_[calls];
    static inline std::atomic<int> error_[calls];
    static inline std::atomic<long> mapped_;
    static inline std::atomic<std::size_t> least_mapping_;
};

}  // namespace ums::os
