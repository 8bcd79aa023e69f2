// SPDX-License-Identifier: MIT
#pragma once

// sched/lock/inside.hpp: a section under a lock that is biased to the processor
// (sched/lock/bias.hpp), with the wait or the wake-up that ends it.
//
// All of it is inlined, because it begins in the fiber's TSan context, continues in the
// processor's, and ends in the fiber's. For ThreadSanitizer's no_sync mode the section orders as
// the lock does that it stands for.

#include "arch/sanitizer.hpp"
#include "sched/lock/bias.hpp"
#include "sched/run/departure.hpp"
#include "sched/run/park.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/wake.hpp"

namespace ums::sched {

class inside {
public:
    explicit UMS_ALWAYS_INLINE inside(std::uint32_t& lock) noexcept : lock_{&lock} {}
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;

    // Returns false, without entering, if the lock is not biased to the processor of the calling
    // fiber.
    [[nodiscard]] UMS_ALWAYS_INLINE bool enter() noexcept { return is_biased() && enter<false>(); }
    // The same for a function that calls no other, and so saves no registers. Requires is_biased().
    // Returns false, without entering, also if a thief asks; then call enter().
    [[nodiscard]] UMS_ALWAYS_INLINE bool try_enter() noexcept { return enter<true>(); }

    // A hint: whether the lock is biased to any processor.
    [[nodiscard]] UMS_ALWAYS_INLINE bool is_biased() const noexcept {
        return bias_word::is_biased(base::atomic_ref<std::uint32_t>{*lock_});
    }

    // A section that a function enters may be left by another, to which it passes these on. Not
    // with TSan: see above.
    struct place {
        carrier_core* c;
        fiber* self;
        processor* p;
    };
    [[nodiscard]] UMS_ALWAYS_INLINE place where() const noexcept { return {c_, self_, p_}; }
    UMS_ALWAYS_INLINE inside(std::uint32_t& lock, const place& entered) noexcept
        : lock_{&lock}, c_{entered.c}, self_{entered.self}, p_{entered.p} {}

    UMS_ALWAYS_INLINE void leave() noexcept {
        c_->leave(self_->race);
        arch::happens_after(lock_);
    }

    [[nodiscard]] UMS_ALWAYS_INLINE fiber& self() const noexcept { return *self_; }

    // Leaves, and ends the wait of `who`, which the caller has taken out of its list.
    UMS_ALWAYS_INLINE void wake(parkable& who) noexcept {
        if (!who.is_held.get()) [[unlikely]] {
            leave();
            return sched::wake(who);
        }
        auto& f = static_cast<fiber&>(who);
        processor* const p = p_;
        if (p->trace != nullptr) [[unlikely]]
            trace_wake(*p->trace, f, self_);
        if (!end_hold(f)) [[unlikely]]
            return leave();
        if (!p->make_next(f)) [[unlikely]]
            return ready::and_leave(*this, *p, f);
        leave();
        p->wake_help();
    }

    // Leaves, and waits until wake() or resume_held() has come for the calling fiber, which is in a
    // list. Returns false if it has only left; then call sched::park() as usual.
    [[nodiscard]] UMS_ALWAYS_INLINE bool park() noexcept {
        fiber* const next = c_->exceptions->active() ? nullptr : p_->ready.pop_within_round();
        if (next == nullptr) [[unlikely]] {
            leave();
            return false;
        }
        self_->is_held.set(true);
        departure<false> leaving{c_, self_};
        leaving.record(*p_, trace_wait::library, next);
        leaving.to(next, nullptr);
        arch::happens_after(self_);
        arch::happens_after(lock_);
        return true;
    }

private:
    template <bool at_once>
    [[nodiscard]] UMS_ALWAYS_INLINE bool enter() noexcept {
        const base::atomic_ref<std::uint32_t> word{*lock_};
        const here at;
        // The caller is in a policy's method.
        if (at.self == nullptr || at.on->ownership.is_inside()) return false;
        c_ = at.on;
        self_ = at.self;
        arch::happens_before(lock_);
        p_ = at_once ? c_->try_enter() : c_->enter();
        if (p_ == nullptr) [[unlikely]]
            return false;
        if (bias_word::is_mine(word, p_->bias_number.get())) [[likely]]
            return true;
        c_->leave(self_->race);
        return false;
    }

    std::uint32_t* const lock_;
    carrier_core* c_ = nullptr;
    fiber* self_ = nullptr;
    processor* p_ = nullptr;
};

}  // namespace ums::sched
