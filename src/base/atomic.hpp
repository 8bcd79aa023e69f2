// SPDX-License-Identifier: MIT
#pragma once

// base/atomic.hpp: the only way this library touches shared memory.
//
// A thin shim over std::atomic in which every access names its memory order (there are no defaults
// and no operators). So the order is a decision beside the code, and the same code can be compiled
// against a model checker's atomics. `owned` is a plain field that one holder writes and other
// threads may read as a hint: relaxed loads and stores, which cost what a plain access costs.

#include <atomic>

namespace ums::base {

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

template <class T>
class atomic {
public:
    constexpr atomic() noexcept : value_{} {}
    constexpr explicit atomic(T initial) noexcept : value_{initial} {}
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    [[nodiscard]] T load(std::memory_order order) const noexcept { return value_.load(order); }
    void store(T desired, std::memory_order order) noexcept { value_.store(desired, order); }
    T exchange(T desired, std::memory_order order) noexcept {
        return value_.exchange(desired, order);
    }
    bool compare_exchange(T& expected, T desired, std::memory_order success,
                          std::memory_order failure) noexcept {
        return value_.compare_exchange_strong(expected, desired, success, failure);
    }
    T fetch_add(T n, std::memory_order order) noexcept { return value_.fetch_add(n, order); }
    T fetch_sub(T n, std::memory_order order) noexcept { return value_.fetch_sub(n, order); }
    T fetch_or(T bits, std::memory_order order) noexcept { return value_.fetch_or(bits, order); }
    T fetch_and(T bits, std::memory_order order) noexcept { return value_.fetch_and(bits, order); }

    // The address that a futex waits on. Only for 32-bit words.
    [[nodiscard]] const void* address() const noexcept { return &value_; }

private:
    std::atomic<T> value_;
};

// The same access to a plain word that lies in a public type, whose header knows no atomics. While
// the word is shared, every access to it goes through one of these.
template <class T>
class atomic_ref {
public:
    explicit atomic_ref(T& word) noexcept : value_{word} {}

    [[nodiscard]] T load(std::memory_order order) const noexcept { return value_.load(order); }
    void store(T desired, std::memory_order order) const noexcept { value_.store(desired, order); }
    T exchange(T desired, std::memory_order order) const noexcept {
        return value_.exchange(desired, order);
    }
    bool compare_exchange(T& expected, T desired, std::memory_order success,
                          std::memory_order failure) const noexcept {
        return value_.compare_exchange_strong(expected, desired, success, failure);
    }
    T fetch_add(T n, std::memory_order order) const noexcept { return value_.fetch_add(n, order); }
    T fetch_sub(T n, std::memory_order order) const noexcept { return value_.fetch_sub(n, order); }
    T fetch_or(T bits, std::memory_order order) const noexcept {
        return value_.fetch_or(bits, order);
    }
    T fetch_and(T bits, std::memory_order order) const noexcept {
        return value_.fetch_and(bits, order);
    }

private:
    std::atomic_ref<T> value_;
};

// A field with one writer (the holder of a processor, or of a lock) that other threads may read as
// a hint.
template <class T>
class owned {
public:
    constexpr owned() noexcept : value_{} {}
    constexpr explicit owned(T initial) noexcept : value_{initial} {}
    owned(const owned&) = delete;
    owned& operator=(const owned&) = delete;

    // relaxed: the reader either owns the field or treats what it reads as a hint.
    [[nodiscard]] T get() const noexcept { return value_.load(relaxed); }
    void set(T value) noexcept { value_.store(value, relaxed); }
    void add(T n) noexcept { set(static_cast<T>(get() + n)); }

    // For a list whose writer and reader share no other order: what the writer did before publish()
    // is visible to the reader after its take() of that value.
    void publish(T value) noexcept { value_.store(value, release); }
    [[nodiscard]] T take() const noexcept { return value_.load(acquire); }

private:
    std::atomic<T> value_;
};

// Orders the compiler only. The other side's membarrier orders the CPU.
inline void compiler_fence() noexcept { std::atomic_signal_fence(seq_cst); }

// What was read before comes before what is read or written after.
inline void load_fence() noexcept { std::atomic_thread_fence(acquire); }

inline void full_fence() noexcept { std::atomic_thread_fence(seq_cst); }

inline void spin_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace ums::base
