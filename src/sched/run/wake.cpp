// SPDX-License-Identifier: MIT
#include "sched/run/wake.hpp"

#include <unistd.h>

#include "os/futex.hpp"
#include "sched/run/here.hpp"
#include "sched/run/ready.hpp"

namespace ums::sched {

namespace {

[[gnu::cold, gnu::noinline]] void trace_unpark_outside(const fiber& f, const fiber* by) noexcept {
    trace_outside_slow(trace_event::unpark, f.id.get(), static_cast<std::uint64_t>(::gettid()),
                       by != nullptr ? by->id.get() : 0);
}

[[gnu::cold, gnu::noinline]] void trace_wake_all(const fiber* list) noexcept {
    const here at;
    processor* const p = at.self != nullptr ? at.enter() : nullptr;
    for (const fiber* f = list; f != nullptr; f = f->link.get()) {
        if (p == nullptr)
            trace_unpark_outside(*f, at.self);
        else if (p->trace != nullptr)
            trace_wake(*p->trace, *f, at.self);
    }
    if (p != nullptr) at.leave();
}

[[gnu::noinline]] void ready_from_outside(fiber& f, const fiber* by) noexcept {
    if (is_trace_wanted()) [[unlikely]]
        trace_unpark_outside(f, by);
    ready::at_home(f);
}

// Puts a claimed fiber into a queue, from outside any processor's ownership.
UMS_ALWAYS_INLINE void make_ready(fiber& f) noexcept {
    const here at;
    if (at.self == nullptr) return ready_from_outside(f, nullptr);
    processor* p = at.enter();
    if (p == nullptr) [[unlikely]]
        return ready_from_outside(f, at.self);
    if (p->trace != nullptr) [[unlikely]]
        trace_wake(*p->trace, f, at.self);
    ready::and_leave(at, *p, f);
}

// Returns whether the caller now owns the target.
template <std::uint32_t parked, std::uint32_t token>
UMS_ALWAYS_INLINE bool claim_or_leave_token(parkable& target) noexcept {
    std::uint32_t seen = target.word.load(base::relaxed);
    for (;;) {
        if ((seen & parked) != 0) {
            // sync(park): acquire sees the saved registers, release publishes what the caller did.
            if (target.word.compare_exchange(seen, seen & ~parkable::of_the_park, base::acq_rel,
                                             base::relaxed))
                return true;
        } else if (target.word.compare_exchange(seen, seen | token, base::release, base::relaxed)) {
            // sync(park): also if the token was there, so that this is ordered before the token's
            // consumption.
            return false;
        }
    }
}

// After the compare-and-swap a plain thread may be gone, so nothing of it is read any more.
UMS_ALWAYS_INLINE void go_on(parkable& target, bool is_fiber) noexcept {
    if (is_fiber)
        make_ready(static_cast<fiber&>(target));
    else
        os::futex_wake(target.word.address());
}

// The fiber, if the caller owns it now.
template <std::uint32_t parked, std::uint32_t token>
fiber* claim_or_wake_thread(parkable& target) noexcept {
    const bool is_fiber = target.is_fiber;
    if (!claim_or_leave_token<parked, token>(target)) return nullptr;
    if (is_fiber) return static_cast<fiber*>(&target);
    os::futex_wake(target.word.address());
    return nullptr;
}

template <std::uint32_t parked, std::uint32_t token>
UMS_ALWAYS_INLINE void wake_or_leave_token(parkable& target) noexcept {
    const bool is_fiber = target.is_fiber;
    if (claim_or_leave_token<parked, token>(target)) go_on(target, is_fiber);
}

}  // namespace

void wake(parkable& target) noexcept {
    wake_or_leave_token<parkable::parked, parkable::token>(target);
}

fiber* claim_for_wake(parkable& target) noexcept {
    return claim_or_wake_thread<parkable::parked, parkable::token>(target);
}

fiber* claim_for_unpark(parkable& target) noexcept {
    fiber* const f = claim_or_wake_thread<parkable::parked_user, parkable::token_user>(target);
    if (f != nullptr && is_trace_wanted()) [[unlikely]]
        trace_unpark_outside(*f, here{}.self);
    return f;
}

void unpark(parkable& target) noexcept {
    wake_or_leave_token<parkable::parked_user, parkable::token_user>(target);
}

bool claim_for(parkable& target, parkable::reason why) noexcept {
    const bool deadline = why == parkable::reason::deadline;
    const std::uint32_t mark = deadline ? parkable::expired : parkable::stopped;
    const std::uint32_t by = deadline ? parkable::by_deadline : parkable::by_stop;
    std::uint32_t seen = target.word.load(base::relaxed);
    for (;;) {
        const std::uint32_t parked = seen & parkable::any_parked;
        const std::uint32_t next = parked != 0 ? (seen & ~parkable::of_the_park) | by : seen | mark;
        // sync(park): as in wake().
        if (target.word.compare_exchange(seen, next, base::acq_rel, base::relaxed))
            return parked != 0;
    }
}

void resume_held(parkable& target) noexcept {
    auto& f = static_cast<fiber&>(target);
    arch::happens_before(&f);  // See park_holding().
    if (end_hold(target)) make_ready(f);
}

[[gnu::cold]] bool end_noted_hold(parkable& target) noexcept {
    std::uint32_t seen = target.word.load(base::relaxed);
    for (;;) {
        const bool mine = (seen & parkable::is_looked_at) == 0;
        const std::uint32_t next =
            mine ? seen & ~parkable::of_a_held_park : seen | parkable::is_awaited;
        // sync(park): release publishes what the caller did to the look that makes it ready.
        if (target.word.compare_exchange(seen, next, base::acq_rel, base::relaxed)) return mine;
    }
}

void resume(parkable& target) noexcept { go_on(target, target.is_fiber); }

void resume_all(fiber* list) noexcept {
    if (is_trace_wanted()) [[unlikely]]
        trace_wake_all(list);
    ready::all(list);
}

}  // namespace ums::sched
