// SPDX-License-Identifier: MIT
#include "workers/worker/home.hpp"

#include <csignal>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define UMS_HAS_RSEQ 1
#endif

#include "arch/bare.hpp"
#include "arch/x86_64/thread_pointer.hpp"
#include "os/system.hpp"

namespace ums::scheduling {

namespace {

// Once the worker is unlocked, another kernel thread may run it, with the TLS block of this one:
// see arch/bare.hpp.
UMS_BARE void bare_home_loop(context* c, std::uint32_t* state, std::uint32_t* order) noexcept {
    for (;;) {
        // sync(ums.state): publishes the saved registers to the scheduler that executes the worker.
        const std::uint32_t was =
            __atomic_fetch_and(state, ~std::uint32_t{locked | awaited}, __ATOMIC_ACQ_REL);
        if ((was & awaited) != 0) arch::bare_futex_wake_all(state);
        std::uint32_t got;
        // sync(ums.home): sees the worker as its scheduler left it.
        while ((got = __atomic_exchange_n(order, std::uint32_t{stay}, __ATOMIC_ACQUIRE)) == stay)
            arch::bare_futex_wait(order, stay);
        if (got == end) {
            // The worker is a stray on its way to its end, which has yet to leave another kernel
            // thread.
            std::uint32_t seen;
            // sync(ums.state): sees that it has left.
            while (((seen = __atomic_load_n(state, __ATOMIC_ACQUIRE)) & locked) != 0) {
                if ((seen & awaited) != 0 ||
                    // relaxed: nothing is published.
                    __atomic_compare_exchange_n(state, &seen, seen | awaited, false,
                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                    arch::bare_futex_wait(state, seen | awaited);
            }
            return;
        }
        arch::switch_context(c->home_registers, c->registers, c, nullptr);
        if (c->has_ended) return;
    }
}

std::uint32_t* word(base::atomic<std::uint32_t>& of) noexcept {
    return static_cast<std::uint32_t*>(const_cast<void*>(of.address()));
}

}  // namespace

void home_loop(context& c) noexcept { bare_home_loop(&c, c.state.bare(), word(c.home)); }

void mask_signals(worker_thread& t) noexcept {
    constexpr int sigsetxid = 33;
    const std::uint64_t all = ~(std::uint64_t{1} << (sigsetxid - 1));
    os::system.signal_mask(&all, &t.signals);
}

void unmask_signals(worker_thread& t) noexcept { os::system.signal_mask(&t.signals, nullptr); }

unsigned unregister_rseq() noexcept {
#if defined(UMS_HAS_RSEQ)
    if (__rseq_size == 0) return 0;
    void* area = static_cast<char*>(arch::thread_pointer()) + __rseq_offset;
    // The C library registers at least the 32 bytes of the first version. If the kernel refuses
    // both sizes, nothing was registered.
    for (const unsigned bytes : {32u, __rseq_size})
        if (os::system.rseq_unregister(area, bytes, RSEQ_SIG) == 0) return bytes;
#endif
    return 0;
}

void register_rseq([[maybe_unused]] unsigned bytes) noexcept {
#if defined(UMS_HAS_RSEQ)
    if (bytes == 0) return;
    os::system.rseq_register(static_cast<char*>(arch::thread_pointer()) + __rseq_offset, bytes,
                             RSEQ_SIG);
#endif
}

}  // namespace ums::scheduling
