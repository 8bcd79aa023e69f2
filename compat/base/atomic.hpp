// SPDX-License-Identifier: MIT
#pragma once

// base/atomic.hpp: short names for memory orders, and the pause of a loop that spins.

#include <atomic>

namespace ums::compat {

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;

inline void spin_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

}  // namespace ums::compat
