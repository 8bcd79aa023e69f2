// SPDX-License-Identifier: MIT
#pragma once

// os/lock.hpp: a mutual exclusion between kernel threads for short sections of the runtime itself.
//
// Spins briefly, then waits on a futex: a holder that the kernel has preempted must not burn the
// waiters' time slices. Never held across a switch. Three states as in Drepper, "Futexes are tricky".
//
// Lock order: each lock has a rank, and a thread that holds one takes only locks of a higher rank. Debug
// builds check it. lock_word is the same lock as a plain word, for those that lie in a public type
// (sync/wait_list.hpp); all of them have the lowest rank, and several may be held at once, in the order of their
// addresses.

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/futex.hpp"

namespace ums::os {

enum class lock_rank : unsigned char { change, depot, timers, idle, policy, leaf };

// The states of a lock's word, and how it is taken. Word: base::atomic or base::atomic_ref.
struct lock_states {
    static constexpr std::uint32_t free = 0, held = 1, contended = 2;

    template <class Word>
    static void acquire(Word& word, const void* address) noexcept {
        std::uint32_t expected = free;
        // sync(os.lock): sees what the last holder wrote before its release.
        if (!word.compare_exchange(expected, held, base::acquire, base::relaxed)) [[unlikely]]
            wait(word, address);
    }
    template <class Word>
    static bool try_acquire(Word& word) noexcept {
        std::uint32_t expected = free;
        // sync(os.lock): as in acquire().
        return word.compare_exchange(expected, held, base::acquire, base::relaxed);
    }
    template <class Word>
    static void release(Word& word, const void* address) noexcept {
        // sync(os.lock): publishes the section to the next holder.
        if (word.exchange(free, base::release) == contended) [[unlikely]]
            futex_wake(address);
    }

private:
    template <class Word>
    [[gnu::noinline]] static void wait(Word& word, const void* address) noexcept {
        for (int i = 0; i < 100; ++i) {
            base::spin_pause();
            std::uint32_t expected = free;
            if (word.load(base::relaxed) == free &&
                word.compare_exchange(expected, held, base::acquire, base::relaxed))
                return;
        }
        // sync(os.lock): as in acquire(); contended stays until nobody waits any more.
        while (word.exchange(contended, base::acquire) != free) futex_wait(address, contended);
    }
};

class lock {
public:
    constexpr explicit lock(lock_rank rank = lock_rank::leaf) noexcept : rank_{rank} {}

    void acquire() noexcept {
        check_order();
        lock_states::acquire(word_, word_.address());
    }
    void release() noexcept {
        forget();
        lock_states::release(word_, word_.address());
    }

#if defined(UMS_DEBUG)
    // Not inlined, here and below: the caller may go on on another kernel thread after a park, and
    // must not keep the address of this one's thread-local.
    [[gnu::noinline]] static bool holds_any() noexcept {
        asm volatile("");
        return held_ranks_.get() != 0;
    }
#else
    static bool holds_any() noexcept { return false; }
#endif

private:
#if defined(UMS_DEBUG)
    // One bit for each rank the thread holds.
    static inline thread_local constinit base::owned<unsigned> held_ranks_{0};
    [[gnu::noinline]] void check_order() noexcept {
        asm volatile("");
        const unsigned bit = 1u << static_cast<unsigned>(rank_);
        UMS_ASSERT(held_ranks_.get() < bit, "a lock was taken against the order of os/lock.hpp");
        held_ranks_.set(held_ranks_.get() | bit);
    }
    [[gnu::noinline]] void forget() noexcept {
        asm volatile("");
        held_ranks_.set(held_ranks_.get() & ~(1u << static_cast<unsigned>(rank_)));
    }
#else
    void check_order() noexcept {}
    void forget() noexcept {}
#endif

    base::atomic<std::uint32_t> word_;
    [[maybe_unused]] const lock_rank rank_;
};

// A lock as a plain word of a public type; zero is free. After release() has made it free the word is
// only named to the kernel, which compares addresses: it may be gone by then.
struct lock_word {
    static void acquire(std::uint32_t& word) noexcept {
        UMS_DEBUG_ASSERT(!lock::holds_any(), "a primitive's lock was taken under the runtime's");
        base::atomic_ref<std::uint32_t> ref{word};
        lock_states::acquire(ref, &word);
    }
    static bool try_acquire(std::uint32_t& word) noexcept {
        base::atomic_ref<std::uint32_t> ref{word};
        return lock_states::try_acquire(ref);
    }
    static void release(std::uint32_t& word) noexcept {
        base::atomic_ref<std::uint32_t> ref{word};
        lock_states::release(ref, &word);
    }
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
