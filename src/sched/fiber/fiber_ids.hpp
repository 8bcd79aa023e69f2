// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/fiber_ids.hpp: numbers that no two fibers of a process share. Processors get them in
// blocks, so that a spawn needs no shared counter.

#include <cstdint>

#include "base/atomic.hpp"

namespace ums::sched {

class fiber_ids {
public:
    // Requires: the processor's ownership.
    [[nodiscard]] UMS_ALWAYS_INLINE std::uint64_t take() noexcept {
        if (next_ == end_) [[unlikely]] {
            next_ = take_block(block);
            end_ = next_ + block;
        }
        return next_++;
    }

    // For a thread that holds no processor.
    [[nodiscard]] static std::uint64_t take_outside() noexcept { return take_block(1); }

private:
    static constexpr std::uint64_t block = 4096;

    [[nodiscard]] static std::uint64_t take_block(std::uint64_t n) noexcept {
        return unused_.fetch_add(n, base::relaxed);  // relaxed: only uniqueness matters.
    }

    static inline constinit base::atomic<std::uint64_t> unused_{1};

    std::uint64_t next_ = 0, end_ = 0;
};

}  // namespace ums::sched
