// SPDX-License-Identifier: MIT
#pragma once

// workers/worker/worker_state.hpp: the word that says which thread may do what with a worker.
//
// Its changes, and the threads that make them:
//
//   none, terminated -> held        the maker of a worker; locked until the worker's thread has
//                                   parked
//   held -> none, terminated        the same, if no thread can be made
//   held -> queued                  the thread that finds that nothing suspends the worker: the
//                                   worker's own, or one that resumes it
//   queued -> owned                 the thread that takes it from its list
//   owned -> running                a scheduler that executes it: one wins by compare-and-swap
//   running -> owned                the scheduler's side, once a yield has saved the registers
//   running -> blocked              the same, before it sends the worker home; or the detector that
//                                   found it blocked in a call that was not announced
//                                   (workers/scheduler/seat.hpp)
//   blocked -> held                 the worker, when its call has returned; locked until it has
//                                   parked
//   held, queued, owned -> blocked  the thread that terminates it; its home then does the next line
//   blocked -> terminated           the worker's thread
//   none, terminated -> blocked     the destroyer of the context, so that no thread makes a worker
//                                   for it;
//   blocked -> none, terminated     and back, if another thread destroyed it first
//
// Flags beside the state: `locked`: the worker's registers are not saved yet, though it may already
// be found on a list; a scheduler that wants to execute it waits, which takes microseconds.
// `awaited`: a scheduler waits for that. `listed`: the worker lies on a list (also while it ends;
// an ended worker is not put there twice).

#include <cstdint>

#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/futex.hpp"

namespace ums::scheduling {

enum state : std::uint32_t {
    none,
    held,  // Parked; the caller that takes the last suspension away queues it.
    queued,
    owned,
    running,
    blocked,
    terminated,
    state_mask = 7,
    locked = 8,
    listed = 16,
    awaited = 32,
};

class worker_state {
public:
    // relaxed: a hint, or the caller is the only one that may change it.
    [[nodiscard]] std::uint32_t look() const noexcept { return word_.load(base::relaxed); }
    [[nodiscard]] std::uint32_t look_for_state() const noexcept { return look() & state_mask; }
    // sync(ums.state): sees what was done before the last change.
    [[nodiscard]] std::uint32_t see() const noexcept { return word_.load(base::acquire); }

    // For a thread that takes the context for something new. No other thread knows of it.
    // relaxed: published by its handle.
    void reset() noexcept { word_.store(none, base::relaxed); }

    // Changes the word by compare-and-swap; returns false if it was not `seen`, and stores there
    // what it is now.
    [[nodiscard]] UMS_ALWAYS_INLINE bool change(std::uint32_t& seen, std::uint32_t next,
                                                std::memory_order order) noexcept {
        UMS_ASSERT(may_follow(seen, next), "a worker's state may not become that from this");
        // relaxed, on failure: the caller looks again.
        return word_.compare_exchange(seen, next, order, base::relaxed);
    }

    // For the only thread that may change the word now.
    void set(std::uint32_t next, std::memory_order order) noexcept {
        UMS_ASSERT(may_follow(look(), next), "a worker's state may not be set to that now");
        word_.store(next, order);
    }

    // The end of an execution by a yield. This is on the path of each yield, so only debug builds
    // check.
    UMS_ALWAYS_INLINE void yielded() noexcept {
        UMS_DEBUG_ASSERT(look() == running, "only a worker that runs can yield");
        // sync(ums.state): publishes the saved registers to the scheduler that executes it next.
        word_.store(owned, base::release);
    }

    // The registers are saved.
    void unlock() noexcept {
        // sync(ums.state): publishes the saved registers to the scheduler that executes it.
        const std::uint32_t was = word_.fetch_and(~std::uint32_t{locked | awaited}, base::acq_rel);
        UMS_ASSERT((was & locked) != 0, "a worker's registers are saved once");
        if ((was & awaited) != 0) os::futex_wake(word_.address(), 0x7fffffff);
    }

    // Waits until the word changes from `seen`, which is locked, if it has not changed already.
    void wait_while_locked(std::uint32_t seen) noexcept {
        UMS_ASSERT((seen & locked) != 0, "a worker that has parked wakes nobody");
        if (change(seen, seen | awaited, base::relaxed))  // relaxed: nothing is published.
            os::futex_wait(word_, seen | awaited);
    }

    // For code without thread-local memory (arch/bare.hpp). That code changes flags only.
    [[nodiscard]] std::uint32_t* bare() noexcept {
        return static_cast<std::uint32_t*>(const_cast<void*>(word_.address()));
    }

private:
    static constexpr bool may_follow(std::uint32_t now, std::uint32_t next) noexcept {
        constexpr auto bit = [](std::uint32_t s) { return 1u << s; };
        constexpr std::uint32_t after[8] = {
            bit(held) | bit(blocked),                                  // none
            bit(queued) | bit(blocked) | bit(none) | bit(terminated),  // held
            bit(owned) | bit(blocked),                                 // queued
            bit(running) | bit(blocked),                               // owned
            bit(owned) | bit(blocked),                                 // running
            bit(held) | bit(terminated) | bit(none),                   // blocked
            bit(held) | bit(blocked),                                  // terminated
        };
        const std::uint32_t from = now & state_mask, to = next & state_mask;
        return from == to || (after[from] & bit(to)) != 0;
    }

    base::atomic<std::uint32_t> word_{none};
};

}  // namespace ums::scheduling
