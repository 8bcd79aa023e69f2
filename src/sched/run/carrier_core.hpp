// SPDX-License-Identifier: MIT
#pragma once

// sched/run/carrier_core.hpp: what its fiber touches of a carrier (sched/run/carrier.hpp): the
// bracket around the processor, and the switch.

#include <cstdint>

#include "arch/context.hpp"
#include "arch/exception_state.hpp"
#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "carry/ownership.hpp"
#include "os/thread_slot.hpp"
#include "sched/fiber/after_switch.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

struct carrier;
struct fiber;

struct alignas(base::cache_line) carrier_core : os::slot_head {
    carrier_core() = default;
    carrier_core(const carrier_core&) = delete;
    carrier_core& operator=(const carrier_core&) = delete;

    // Each is the first base of a carrier, at the same address: its constructor asserts it.
    [[nodiscard]] carrier& whole() noexcept { return reinterpret_cast<carrier&>(*this); }
    [[nodiscard]] const carrier& whole() const noexcept {
        return reinterpret_cast<const carrier&>(*this);
    }

    // The bracket around all work on the processor that it holds. Returns null, without entering,
    // if it no longer holds one, because it was blocked in the kernel. leave() names the side that
    // continues, for ThreadSanitizer.
    [[nodiscard]] UMS_ALWAYS_INLINE processor* enter() noexcept {
        if (!ownership.enter()) [[unlikely]]
            return nullptr;
        return entered();
    }
    // See carry::ownership::try_enter().
    [[nodiscard]] UMS_ALWAYS_INLINE processor* try_enter() noexcept {
        if (!ownership.try_enter()) [[unlikely]]
            return nullptr;
        return entered();
    }
    UMS_ALWAYS_INLINE void leave(const arch::race_context& continues) noexcept {
        ownership.publish();
        continues.resume();
        arch::happens_after(this);  // Comes after its kernel thread's start, and nothing else.
        ownership.let_go();
    }

    // Fills in what the next switch leaves to be done.
    [[nodiscard]] UMS_ALWAYS_INLINE after_switch* then(after_switch::action* finish, fiber* self,
                                                       void* other = nullptr,
                                                       std::uintptr_t word = 0) noexcept {
        after.finish = finish;
        after.self = self;
        after.other = other;
        after.word = word;
        return &after;
    }

    carry::ownership ownership;
    base::owned<processor*> proc;  // Written by code that is inside or holds a claim.
    base::owned<fiber*> running;   // Written by the thread itself. Null if the loop runs.
    // Set once at the thread's start:
    int* errno_at = nullptr;
    // Its thread's; while its fiber keeps it, the constant that is always active
    // (sched/block/keep.hpp).
    arch::exception_state* exceptions = nullptr;

    arch::context loop{};
    after_switch after;
    arch::stack_shadow loop_shadow;
    arch::race_context race;
    base::owned<bool> is_kept;  // By its fiber (sched/block/keep.hpp). Written by its thread.

    // Changes whenever a different fiber runs. Any thread may read it, as a hint.
    [[nodiscard]] std::uint64_t activity() const noexcept {
        const processor* p = proc.get();
        return p != nullptr ? p->activity() : 0;
    }

private:
    UMS_ALWAYS_INLINE processor* entered() noexcept {
        processor* p = proc.get();
        if (p == nullptr) __builtin_unreachable();
        p->race().enter();
        return p;
    }
};

// The calling thread's, or null on other threads. Never cached across a switch.
inline carrier_core* this_carrier_core() noexcept {
    return static_cast<carrier_core*>(os::thread_slot());
}

// The running fiber, whose carrier has no processor, leaves it and continues where it gets one.
// Returns that carrier. Call it in depart() (sched/run/departure.hpp). Keeps errno. Defined with
// the hand-off (sched/block/hand_off.cpp).
[[gnu::noinline]] carrier_core* rejoin(carrier_core* c) noexcept;

// enter() for a fiber at a place where it may change its carrier: first rejoins if it must. Updates
// `c`.
[[nodiscard]] UMS_ALWAYS_INLINE processor* enter_surely(carrier_core*& c) noexcept {
    processor* p = c->enter();
    while (p == nullptr) [[unlikely]] {
            c = rejoin(c);
            p = c->enter();
        }
    return p;
}
}  // namespace ums::sched
