// SPDX-License-Identifier: MIT
#include "windows/guard.hpp"

#include <atomic>

#include "base/check.hpp"
#include "windows/suspension.hpp"

namespace ums::windows {
namespace {
// Written only by the thread and its signal handler.
thread_local constinit volatile int depth = 0;
thread_local constinit volatile bool is_deferred = false;
}  // namespace

uninterrupted::uninterrupted() noexcept {
    worker_critical_enter();
    depth = depth + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

uninterrupted::~uninterrupted() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    UMS_DEBUG_CHECK(depth > 0, "an uninterrupted section ended on another thread");
    depth = depth - 1;
    if (depth == 0 && is_deferred) {
        is_deferred = false;
        obey_suspension();
    }
    worker_critical_leave();
}

bool uninterrupted::defer() noexcept {
    if (depth == 0) return false;
    is_deferred = true;
    return true;
}

}  // namespace ums::windows
