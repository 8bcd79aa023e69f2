// SPDX-License-Identifier: MIT
#pragma once

// os/lock.hpp: mutual exclusion of kernel threads, for short sections of the runtime itself.
//
// A waiter spins briefly, then waits on a futex, because a holder that the kernel has preempted
// must not burn the waiters' time slices. A lock is held across a switch in one place only
// (sched/run/park.hpp: park_holding()).
//
// Taking the lock costs one compare-and-swap, releasing it a plain store: the sleeper pays for the
// fence. A sleeper counts itself in a table that the hash of the lock's address selects, executes a
// heavy fence (os/cpu/membarrier.hpp), and then sleeps only while the word is held. A release
// stores "free", then reads that count. By the argument there, either the release sees the sleeper
// and wakes one, or the sleeper sees the lock free. The count is not in the lock, because a lock
// may be gone as soon as it is free. A sleeper that was woken stays counted until it has the lock,
// so a thread that overtakes it wakes it again. Where membarrier is refused, a sleeper looks again
// every millisecond.
//
// A sleep ends when a section does, so it is no block of the kind that costs a processor its
// carrier: a carrier that sleeps here says so (sched/block/detection.hpp), and only a long sleep
// counts as one.
//
// A word that is neither free nor held is biased (sched/lock/bias.hpp): it counts as held, except
// for code that knows another way in. The slow path of an acquire takes such a bias away.
//
// Lock order: each lock has a rank, and a thread that holds one takes only locks of a higher rank.
// Debug builds check it. lock_word is the same lock as a plain word, for locks that lie in a public
// type (sync/wait_list.hpp); all of them have the lowest rank, and a thread may hold several at
// once, in the order of their addresses.

#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/lock_rank.hpp"
#include "os/no_stop.hpp"

namespace ums::os {

// How a lock's word is taken. Word is base::atomic or base::atomic_ref.
struct lock_states {
    static constexpr std::uint32_t free = 0, held = 1;  // All values above are biases.

    // Makes a biased word held by the caller. Returns what the release may make of it: free, or the
    // bias that was taken away; or returns held: the word was not taken, look again. Set before
    // there is a bias.
    using revoker = std::uint32_t (*)(std::uint32_t& word, std::uint32_t seen) noexcept;
    static inline constinit base::atomic<revoker> revoke{nullptr};

    // Returns what to release the word with: free, unless the caller is to keep a bias.
    template <class Word>
    static std::uint32_t acquire(Word& word, const void* address) noexcept {
        if (!try_acquire(word)) [[unlikely]]
            return wait(word, address);
        return free;
    }
    template <class Word>
    static bool try_acquire(Word& word) noexcept {
        std::uint32_t expected = free;
        // sync(os.lock): sees what the last holder wrote before its release.
        return word.compare_exchange(expected, held, base::acquire, base::relaxed);
    }
    // `next` is free or a bias.
    template <class Word>
    static void release(Word& word, const void* address, std::uint32_t next = free) noexcept {
        // sync(os.lock): publishes the section to the next holder.
        word.store(next, base::release);
        base::compiler_fence();  // The light side of sleep(): its heavy fence orders the two.
        // relaxed: see above.
        if (sleepers(address).load(base::relaxed) != 0) [[unlikely]]
            futex_wake(address);
    }

    // In the child of a fork(): the sleepers are not there. By the only thread there is.
    static void leave_behind() noexcept {
        for (auto& p : counts_) p.sleepers.store(0, base::relaxed);
    }

    // Called before and after each sleep of a thread whose slot (os/thread_slot.hpp) is not empty.
    // They take no lock. Set while there is no such thread; null: nobody wants to know.
    struct sleep_calls {
        void (*begins)() noexcept;
        void (*has_ended)() noexcept;
    };
    static inline constinit sleep_calls on_sleep{nullptr, nullptr};

    // The word if it was biased and is the caller's now. Else held.
    template <class Word>
    static std::uint32_t take_bias(Word& word, const void* address) noexcept {
        // relaxed: the revoker decides.
        const std::uint32_t seen = word.load(base::relaxed);
        if (seen <= held) return held;
        auto* const at = static_cast<std::uint32_t*>(const_cast<void*>(address));
        // relaxed: it was set long before.
        return revoke.load(base::relaxed)(*at, seen);
    }

private:
    // A waiter's, before it sleeps: 10 to 30 us. On CPUs with a short pause it is less.
    static constexpr int looks = 20, pauses = 32;

    template <class Word>
    [[gnu::noinline]] static std::uint32_t wait(Word& word, const void* address) noexcept {
        // A section is short, so the first look comes soon. The others come late: under contention
        // the holder gets the lock some dozens of times in between, with its cache line and what
        // lies beside it. Two threads that took turns would move all that each time. Sleeping costs
        // more than all looks together, for both sides: until the sleeper runs, each release makes
        // a system call for it.
        for (int look = 0; look < looks; ++look) {
            // relaxed: try_acquire() decides.
            const std::uint32_t seen = word.load(base::relaxed);
            if (seen == free && try_acquire(word)) return free;
            if (seen > held) {
                const std::uint32_t next = take_bias(word, address);
                if (next != held) return next;
            }
            for (int i = 0; i < (look == 0 ? 1 : pauses); ++i) base::spin_pause();
        }
        const sleeper counted{address};
        while (!try_acquire(word)) {
            const std::uint32_t next = take_bias(word, address);
            if (next != held) return next;
            futex_wait(address, held, counted.limit());
        }
        return free;
    }

    using count = base::atomic<std::uint32_t>;
    // Each release reads one of these. Each lies in a cache line of its own, so that no other
    // lock's sleepers write to that line.
    struct alignas(base::cache_line) place {
        count sleepers;
    };
    static constexpr std::size_t places = 64;
    static inline constinit place counts_[places];

    static count& sleepers(const void* address) noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        return counts_[at / 64 % places].sleepers;
    }

    // Counts the caller as a sleeper while it exists.
    class sleeper {
    public:
        explicit sleeper(const void* address) noexcept;
        ~sleeper();
        sleeper(const sleeper&) = delete;
        sleeper& operator=(const sleeper&) = delete;

        [[nodiscard]] nanoseconds limit() const noexcept {
            return is_ordered_ ? never : now() + 1'000'000;
        }

    private:
        count& count_;
        const bool is_ordered_;
    };
};

class lock {
public:
    constexpr explicit lock(lock_rank rank = lock_rank::leaf) noexcept : rank_{rank} {}

    void acquire() noexcept {
        begin_no_stop();
        check_order();
        lock_states::acquire(word_, word_.address());
    }
    void release() noexcept {
        forget();
        lock_states::release(word_, word_.address());
        end_no_stop();
    }
    // In the child of a fork(): its holder is not there. By the only thread there is.
    void leave_behind() noexcept { word_.store(lock_states::free, base::relaxed); }

#if defined(UMS_DEBUG)
    // Not inlined, here and below: after a park the caller may continue on another kernel thread,
    // and must not keep the address of this one's thread-local.
    [[gnu::noinline]] static bool holds_any() noexcept {
        asm volatile("");
        return held_ranks_.get() != 0;
    }
#else
    static bool holds_any() noexcept { return false; }
#endif

private:
#if defined(UMS_DEBUG)
    // One bit for each rank that the thread holds.
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

// A lock as a plain word of a public type; zero is free. After release() has made it free, the word
// is only named to the kernel, which compares addresses: it may be gone by then.
//
// It is released on the kernel thread that acquired it, also where that happens after a switch
// (sched/run/park.hpp), because no thread is stopped in between. A holder that was stopped would
// wait for its turn behind a multitude that waits for the lock, each on a kernel thread.
struct lock_word {
    // Returns what to release the word with: see lock_states.
    static std::uint32_t acquire(std::uint32_t& word) noexcept {
        UMS_DEBUG_ASSERT(!lock::holds_any(), "a primitive's lock was taken under the runtime's");
        base::atomic_ref<std::uint32_t> ref{word};
        begin_no_stop();
        return lock_states::acquire(ref, &word);
    }
    static bool try_acquire(std::uint32_t& word) noexcept {
        base::atomic_ref<std::uint32_t> ref{word};
        begin_no_stop();
        if (lock_states::try_acquire(ref)) return true;
        if (lock_states::take_bias(ref, &word) != lock_states::held) return true;
        end_no_stop();
        return false;
    }
    static void release(std::uint32_t& word, std::uint32_t next = lock_states::free) noexcept {
        base::atomic_ref<std::uint32_t> ref{word};
        lock_states::release(ref, &word, next);
        end_no_stop();
    }
};

// Holds a lock_word to the end of its scope, except between unlock() and lock().
class word_guard {
public:
    explicit word_guard(std::uint32_t& word) noexcept : word_{word} { lock_word::acquire(word_); }
    ~word_guard() {
        if (is_held_) lock_word::release(word_);
    }
    word_guard(const word_guard&) = delete;
    word_guard& operator=(const word_guard&) = delete;

    // `next`: see lock_states.
    void unlock(std::uint32_t next = lock_states::free) noexcept {
        is_held_ = false;
        lock_word::release(word_, next);
    }
    void lock() noexcept {
        lock_word::acquire(word_);
        is_held_ = true;
    }

private:
    std::uint32_t& word_;
    bool is_held_ = true;
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
