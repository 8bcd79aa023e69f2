// SPDX-License-Identifier: MIT
#include "os/thread/thread_cpu.hpp"

#include <sched.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include "os/system.hpp"

namespace ums::os {

namespace {

constexpr unsigned area_bytes = 32, signature = 0x53053053;  // The same as in the C library.

}  // namespace

void thread_cpu::begin() noexcept {
#if defined(RSEQ_SIG)
    if (__rseq_size == 0) return;
    const auto* at = static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset;
    const auto* word = &reinterpret_cast<const struct rseq*>(at)->cpu_id;
    at_.store(reinterpret_cast<const std::uint32_t*>(word), base::seq_cst);  // See get().
#endif
}

void thread_cpu::begin_own() noexcept {
    own_.words[1] = ~0u;  // Not known yet.
    has_own_ = system.rseq_register(&own_, area_bytes, signature) == 0;
    if (has_own_) at_.store(&own_.words[1], base::seq_cst);  // See get().
}

void thread_cpu::end() noexcept {
    if (has_own_) system.rseq_unregister(&own_, area_bytes, signature);
    has_own_ = false;
    at_.store(nullptr, base::seq_cst);  // See get().
    // A reader counts itself only for three instructions, unless it is preempted there.
    while (readers_.load(base::seq_cst) != 0) sched_yield();
}

// sched_getcpu() reads the area in the TLS block. If several threads use that block, the area is
// not registered; the C library sees that in the area.
int thread_cpu::here() noexcept { return sched_getcpu(); }

}  // namespace ums::os
