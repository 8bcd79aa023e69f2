// SPDX-License-Identifier: MIT
#pragma once

// sched/run/carrier.hpp: a kernel thread of the runtime that can run fibers.
//
// It holds at most one processor and runs at most one fiber. Its own stack runs the loop that looks
// for work when a fiber stops and nothing else is ready; between two ready fibers the switch is
// direct. The running fiber belongs to the carrier and not to the processor, because a carrier that
// blocks in the kernel keeps its fiber while its processor moves elsewhere
// (sched/block/hand_off.hpp).
//
// Life: the maker's thread (carry/maker.hpp) makes it for a pool (sched/block/carrier_pool.hpp); it
// holds a processor and runs fibers; when it has no processor and no fiber left, it waits in the
// pool as a spare. The object outlives its kernel thread, because a thief may still look at it. It
// is destroyed with its pool.

#include "base/atomic.hpp"
#include "carry/interrupt.hpp"
#include "carry/turn.hpp"
#include "os/thread/kernel_thread.hpp"
#include "os/thread/placement.hpp"
#include "os/thread/thread_cpu.hpp"
#include "os/thread_slot.hpp"
#include "sched/fiber/after_switch.hpp"
#include "sched/run/carrier_core.hpp"

namespace ums::sched {

using carry::turn_word;

struct fiber;
class carrier_pool;

struct carrier : carrier_core {
    explicit carrier(carrier_pool& pool) noexcept;

    // --- The pool's (sched/block/carrier_pool.hpp) ---
    carry::turn_word turn;  // What the thread waits on while it holds no processor.
    base::owned<int> tid;
    os::thread_cpu cpu;
    os::placement wake_place;  // Where it wakes up. Owned by its waker, then by itself.
    int pinned_to = -1;        // The CPU. Its thread's.
    carrier_pool& pool;
    // Link in whichever list of the pool holds this carrier. Guarded by the pool's lock.
    carrier* next = nullptr;
    // It waits in the pool for a spare that takes its processor. Guarded by the same lock.
    bool is_wanting = false;
    carrier* next_wanting = nullptr;
    std::uint64_t wanting_since = 0;   // activity() at that time.
    os::nanoseconds wanting_from = 0;  // When it first had that activity there.
    // The next of all carriers of the pool. Guarded by the same lock.
    carrier* next_made = nullptr;
    // A permit, for an unmarked block. Changed under a claim, or by the carrier itself.
    bool has_borrowed = false;
    // The fiber to make ready once this carrier holds the processor that it is being given: the one
    // that was stopped there.
    fiber* brings = nullptr;
    os::kernel_thread thread;
    // Its thread is the first of a process that fork() made: adopt(). Nobody joins it, and it never
    // ends.
    bool is_adopted = false;

    // What a carrier has while its fiber keeps it, and the relief of such a carrier
    // (sched/block/keep.hpp).
    struct keeping_state {
        // Takes the processor over when the fiber waits. Written by code that is inside or holds a
        // claim; while the carrier has no processor, by its thread.
        base::owned<carrier*> relief;
        base::owned<bool> stands_by;     // Waits for a processor, and is no spare. Its thread's.
        base::owned<carrier*> gives_to;  // Gets the processor as soon as the loop runs. Its
                                         // thread's.
        // What the carrier runs first once it has the processor that it is being given: an action
        // that another carrier has left, and a fiber. Written inside that processor.
        base::owned<const after_switch*> begun;
        base::owned<fiber*> runs_first;
    } keeping;

    // How its fiber is stopped (sched/block/stop.hpp). Owned by its thread; others arm `interrupt`.
    struct stopping_state {
        explicit stopping_state(const carry::interrupt_source& source, std::size_t bytes)
            : interrupt{source, bytes} {}
        carry::interrupt interrupt;
        // It works on being stopped, or waits for a processor, or has one and is about to be woken
        // for it. Then no thread may take the processor: the carrier looks blocked, but is not.
        base::owned<bool> is_going_on;
        // The activity whose time slice is over: the interrupt was armed for it. Owned by the
        // thread that armed it.
        base::owned<std::uint64_t> ends_time_slice_of;
        // It waits in the signal's handler; its fiber is wherever it belongs.
        base::owned<bool> waits_for_turn;
        // How often the present stop has been put off in the C library, and whose it is.
        unsigned deferrals = 0;
        std::uint64_t deferred_at = 0;  // activity() then.
    } stopping;

    // Its thread sleeps in a lock of the runtime's since then (sched/block/detection.cpp); 0: it
    // does not. Its thread's, as what the detector said about that.
    base::owned<os::nanoseconds> in_lock_since;
    base::owned<int> looked_away{-1};
    base::owned<std::uint64_t> detectors_look;  // What detection::runs() returned. Its thread's.
    [[nodiscard]] std::uint64_t take_look() noexcept {
        const std::uint64_t look = detectors_look.get();
        detectors_look.set(0);
        return look;
    }

    // Called by its thread: from now on it waits to be given a processor, and is no spare.
    void stand_by() noexcept {
        turn.set(turn_word::waits);
        keeping.stands_by.set(true);
    }

    // The kernel thread's function.
    void run() noexcept;

    // In the child of a fork(): the calling thread is this carrier's from now on, and runs `f`, the
    // caller. Requires: it holds a processor. Its loop gets a stack of its own, for the thread's
    // belongs to the carrier that was left behind. False: there is no memory, and nothing has
    // happened.
    [[nodiscard]] bool adopt(fiber& f) noexcept;

    // To the CPU of the processor it holds, if the cluster wants that.
    void follow_processor() noexcept;

private:
    void begin() noexcept;
    void run_fibers() noexcept;
    UMS_ALWAYS_INLINE void run_on(fiber* first) noexcept;
    void hurry_look(const processor& p) noexcept;
    UMS_ALWAYS_INLINE void give_to_relief() noexcept;
    static void begin_adopted(void* by, void* after, void* self) noexcept;
    UMS_ALWAYS_INLINE void retire() noexcept;
};

// The calling thread's carrier, or null on other threads. Never cached across a switch.
inline carrier* this_carrier() noexcept { return static_cast<carrier*>(os::thread_slot()); }

}  // namespace ums::sched
