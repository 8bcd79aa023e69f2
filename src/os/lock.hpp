// SPDX-License-Identifier: MIT
#pragma once

// os/lock.hpp: a mutual exclusion between kernel threads for short sections of the runtime itself.
//
// Spins briefly, then waits on a futex: a holder that the kernel has preempted must not burn the
// waiters' time slices. Never held across a switch. Three states as in Drepper, "Futexes are tricky".
//
// Lock order: each lock has a rank, and a thread that holds one takes only locks of a higher rank. Debug
// builds check it.

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/futex.hpp"

namespace ums::os {

enum class lock_rank : unsigned char { change, depot, timers, idle, policy, leaf };

class lock {
public:
    constexpr explicit lock(lock_rank rank = lock_rank::leaf) noexcept : rank_{rank} {}

    void acquire() noexcept {
        check_order();
        std::uint32_t expected = free_;
        // sync(os.lock): sees what the last holder wrote before its release.
        if (!word_.compare_exchange(expected, held_, base::acquire, base::relaxed)) wait();
    }

    void release() noexcept {
        forget();
        // sync(os.lock): publishes the section to the next holder.
        if (word_.exchange(free_, base::release) == contended_) futex_wake(word_.address());
    }

private:
    void wait() noexcept {
        for (int i = 0; i < 100; ++i) {
            base::spin_pause();
            std::uint32_t expected = free_;
            if (word_.load(base::relaxed) == free_ &&
                word_.compare_exchange(expected, held_, base::acquire, base::relaxed))
                return;
        }
        // sync(os.lock): as in acquire(); contended_ stays until nobody waits any more.
        while (word_.exchange(contended_, base::acquire) != free_) futex_wait(word_, contended_);
    }

#if defined(UMS_DEBUG)
    // One bit for each rank the thread holds.
    static inline thread_local constinit base::owned<unsigned> held_ranks_{0};
    void check_order() noexcept {
        const unsigned bit = 1u << static_cast<unsigned>(rank_);
        UMS_ASSERT(held_ranks_.get() < bit, "a lock was taken against the order of os/lock.hpp");
        held_ranks_.set(held_ranks_.get() | bit);
    }
    void forget() noexcept {
        held_ranks_.set(held_ranks_.get() & ~(1u << static_cast<unsigned>(rank_)));
    }
#else
    void check_order() noexcept {}
    void forget() noexcept {}
#endif

    static constexpr std::uint32_t free_ = 0, held_ = 1, contended_ = 2;
    base::atomic<std::uint32_t> word_;
    [[maybe_unused]] const lock_rank rank_;
};

class lock_guard {
public:
    explicit lock_guard(lock& l) noexcept : lock_{l} { lock_.acquire(); }
    ~lock_guard() { lock_.release(); }
    lock_guard(const lock_guard&) = delete;
    lock_guard& operator=(const lock_guard&) = delete;

private:
    lock& lock_;
};

}  // namespace ums::os
