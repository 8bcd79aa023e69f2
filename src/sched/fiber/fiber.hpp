// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/fiber.hpp: the descriptor of a fiber, built at the top of its own stack.
//
// Life: taken from a stack cache (spawn) -> ready (in a queue) -> running (on a carrier that holds
// a processor) -> parked or ready again ... -> finished -> joined or detached, and its stack goes
// back to a cache. The queue link belongs to whichever queue holds the fiber; nothing else does
// while it runs.

#include <cstddef>
#include <cstdint>

#include "arch/context.hpp"
#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "mem/slab.hpp"
#include "sched/fiber/blocking_note.hpp"
#include "sched/fiber/exit_hooks.hpp"
#include "sched/fiber/parkable.hpp"
#include "sched/fiber/wait_record.hpp"
#include "sched/fiber/wishes.hpp"

namespace ums::sched {

class cluster;
class processor;

struct alignas(base::cache_line) fiber : mem::stack_head, parkable {
    // The joiner word: one of these, or the parkable that waits in join(). `discarded` is detached
    // by a handle whose fiber keeps something for it (see below), which is to be dropped first.
    static constexpr std::uintptr_t running = 0, finished = 1, discarded = 2, detached = 3;

    // How much may lie between the descriptor and the function: what the fiber keeps for its
    // joiner or its scope (ums/impl/spawn.hpp), and its name.
    static constexpr std::size_t top_bytes = 1024;

    // Made on a stack from the depot or a cache, whose head it keeps.
    explicit fiber(const mem::stack_head& head) noexcept : mem::stack_head{head}, parkable{true} {}

    // Where to continue; meaningless while it runs. Together with the members above, this is the
    // first cache line: all of the descriptor that a switch touches.
    arch::context context;

    // Written by the processor that runs or queues the fiber:
    base::owned<fiber*> link;  // Link of the queue that holds it.
    base::owned<cluster*> home_cluster;
    // Null if it may run on any processor of its cluster. See pin().
    base::owned<processor*> pinned_to;
    base::atomic<std::uintptr_t> joiner;

    // Zero while the stack is free, so that a reader from outside recognises a live fiber.
    base::owned<std::uint64_t> id;

    // Set once in spawn, then read-only:
    void (*run)(void* callable);
    // Lies on the fiber's own stack; not null. The text may change if the fiber was made as a
    // pthread.
    const char* name;

    // Written by the fiber itself. It begins in the cache line that the fiber's wakers touch.
    wait_record waits;

    // Set once in spawn, then read-only:
    void* callable;
    std::uint64_t spawner;   // The id of the fiber that made it; 0: a plain thread did.
    const void* spawned_at;  // Where the code that made it continues.

    // For the cluster's policy; only the policy gives it a meaning.
    base::owned<std::uint64_t> tag;
    // What the program asks for it, and what a built-in policy keeps about it.
    wishes wanted;
    policy_note kept;

    // For the ordered queue that holds it (ums/policy.hpp), if there is one:
    fiber* first_behind;
    std::uint64_t order, arrival;

    // Drops what the fiber keeps. Set once, before the joiner word says `discarded`.
    void (*drop)(void* fiber);

    sched::belongings belongings;
    // Written by the fiber itself:
    blocking_note blocks;

    arch::stack_shadow shadow;
    arch::race_context race;

    void pin(processor* to) noexcept {
        pinned_to.set(to);
        is_pinned.set(to != nullptr);
    }
};

}  // namespace ums::sched
