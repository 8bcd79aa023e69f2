// SPDX-License-Identifier: MIT
#pragma once

// sched/block/hand_off.hpp: a processor leaves a carrier that is blocked in the kernel for another
// carrier.
//
// The thread that takes the processor needs a claim on the blocked carrier (carry/ownership.hpp),
// so that carrier is in a user's code or in the kernel, never inside the scheduler. It keeps its
// fiber and finds out by its own word, when it next wants to work on a processor: enter() fails.
// Then the fiber leaves it (rejoin()): the fiber is put into its cluster's queue and continues
// wherever its turn comes, and the carrier becomes a spare.

#include "sched/block/carrier_pool.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/run/carrier.hpp"

namespace ums::sched {

struct hand_off {
    enum class result {
        done,
        // The maker makes a spare, which takes the processor if the fiber still has not moved.
        later,
        // There are as many carriers as allowed. A stopped one may have got the processor.
        refused,
        // It has switched since, holds no processor, runs no fiber, or works in the scheduler.
        not_blocked,
    };

    // For a detector: the carrier was seen blocked in the kernel, with the fiber that it ran when
    // its activity was `seen`. Any thread but a carrier may call it. Says whether the fiber was in
    // a marked region, if it was blocked at all. `free_cpu` is where the processor should continue;
    // -1: wherever the kernel likes.
    static result from(carrier& blocked, std::uint64_t seen, bool& was_marked,
                       int free_cpu = -1) noexcept;

    // The calling carrier, which is inside, gives its processor to `spare`. Its fiber continues
    // without one, outside. Inlined, because it begins in the processor's TSan context and ends in
    // the fiber's.
    UMS_ALWAYS_INLINE static void give_up(carrier& self, carrier& spare) noexcept {
        move(self, spare);
        self.leave(self.running.get()->race);
        self.pool.run(spare);
    }

    // `spare`, which belongs to the caller, takes the processor of `blocked`. Returns false if that
    // is no longer blocked.
    static bool take_over(carrier& blocked, carrier& spare, std::uint64_t seen) noexcept;

    // `back`, which has no processor and a permit, takes the processor of `blocked`, which gets the
    // permit. Returns false if that is no longer blocked.
    static bool exchange(carrier& blocked, carrier& back, std::uint64_t seen) noexcept;

    // The caller must be inside `from` or hold a claim on it, and owns `to`. No thread is woken.
    static void move(carrier& from, carrier& to) noexcept;

private:
    static bool claim(carrier& blocked, std::uint64_t seen) noexcept;
    // Borrows a permit for it. Returns false if there is none; then the claim is over, and its
    // processor went to a stopped carrier, or stays.
    static bool keeps_claim(carrier& blocked) noexcept;
    static void pass_on(carrier& blocked, carrier& to) noexcept;
};

// For a fiber at a place where it may change its carrier: waits for its turn if that has no
// processor. Returns outside.
void get_processor(carrier& c) noexcept;

}  // namespace ums::sched
