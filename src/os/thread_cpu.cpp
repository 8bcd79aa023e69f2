// SPDX-License-Identifier: MIT
#include "os/thread_cpu.hpp"

#include <sched.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

namespace ums::os {

void thread_cpu::begin() noexcept {
#if defined(RSEQ_SIG)
    if (__rseq_size == 0) return;
    const auto* area = static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset;
    const auto* word = &reinterpret_cast<const struct rseq*>(area)->cpu_id;
    at_.store(reinterpret_cast<const std::uint32_t*>(word), base::seq_cst);  // See get().
#endif
}

void thread_cpu::end() noexcept {
    at_.store(nullptr, base::seq_cst);  // See get().
    // A reader counts itself for three instructions, unless it is preempted among them.
    while (readers_.load(base::seq_cst) != 0) sched_yield();
}

int thread_cpu::here() noexcept { return sched_getcpu(); }

}  // namespace ums::os
