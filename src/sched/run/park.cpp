// SPDX-License-Identifier: MIT
#include "sched/run/park.hpp"

#include "base/assert.hpp"
#include "os/futex.hpp"
#include "os/lock.hpp"
#include "os/thread/at_rest.hpp"
#include "sched/run/departure.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/search.hpp"
#include "sched/run/wake.hpp"

namespace ums::sched {

namespace {

using reason = parkable::reason;

template <park_kind kind>
inline constexpr std::uint32_t parked_bit =
    kind == park_kind::user ? parkable::parked_user : parkable::parked;
template <park_kind kind>
inline constexpr std::uint32_t token_bit =
    kind == park_kind::user ? parkable::token_user : parkable::token;

// A plain thread's parkable. Only noinline code takes its address, on threads that never change.
thread_local parkable thread_parkable{false};

// Completes a park, with `notes` about it. Returns true if it is parked, and false if something
// came first and is consumed.
template <park_kind kind>
bool commit(parkable& self, std::uint32_t notes = 0) noexcept {
    std::uint32_t seen = self.word.load(base::relaxed);
    for (;;) {
        UMS_DEBUG_ASSERT((seen & parkable::any_parked) == 0, "parked twice");
        constexpr std::uint32_t token = token_bit<kind>;
        std::uint32_t next;
        if ((seen & (token | parkable::expired | parkable::stopped)) == 0) [[likely]]
            next = seen | parked_bit<kind> | notes;
        else if ((seen & token) != 0)
            // A wake-up takes precedence over the others, whose marks clear() takes back.
            next = seen & ~token;
        else if ((seen & parkable::expired) != 0)
            next = (seen & ~std::uint32_t{parkable::expired}) | parkable::by_deadline;
        else
            next = (seen & ~std::uint32_t{parkable::stopped}) | parkable::by_stop;
        // sync(park): publishes the saved registers to the waker that clears the bit. What an early
        // waker did before it left its token, take_reason() sees.
        if (self.word.compare_exchange(seen, next, base::release, base::relaxed))
            return (next & parked_bit<kind>) != 0;
    }
}

// Returns what ended the park that was just left.
UMS_ALWAYS_INLINE reason take_reason(parkable& self) noexcept {
    // sync(park): sees what the waker did before it cleared the parked bit.
    const std::uint32_t seen = self.word.load(base::acquire);
    if ((seen & (parkable::by_deadline | parkable::by_stop)) == 0) [[likely]]
        return reason::wake;
    // relaxed: only this waiter reads them.
    self.word.fetch_and(~std::uint32_t{parkable::by_deadline | parkable::by_stop}, base::relaxed);
    return (seen & parkable::by_deadline) != 0 ? reason::deadline : reason::stop;
}

template <park_kind kind>
void finish_park(const after_switch& h, carrier_core& c) noexcept {
    // If it has, another processor may already be running the fiber.
    if (commit<kind>(*h.self)) return;
    processor& p = *c.proc.get();
    if (p.trace != nullptr) [[unlikely]]
        trace_wake(*p.trace, *h.self, nullptr);
    // The thread that ended the park left a mark, and woke no processor; the fiber that runs here
    // now may take long.
    if (ready::at(p, *h.self, processor::place::next)) p.wake_help();
}

// `until`: a deadline this fiber has just added to the processor `timed`, or never and null.
template <park_kind kind, bool keeps>
UMS_ALWAYS_INLINE reason park_fiber(departure<keeps> leaving, os::nanoseconds until,
                                    processor* timed) noexcept {
    fiber& self = *leaving.self;
    if ((self.word.load(base::relaxed) & token_bit<kind>) != 0) {
        // sync(park): sees what the early waker did.
        self.word.fetch_and(~token_bit<kind>, base::acquire);
        return reason::wake;
    }
    processor* p = leaving.enter();
    // The processor's new holder may already wait in the driver, for a later deadline than the one
    // just added.
    if (until != os::never && p != timed) [[unlikely]]
        timed->notify_of_deadline();
    fiber* next = p->pick();
    // A processor that becomes idle waits for its own deadlines; one that runs on may take long,
    // and so may another.
    if (until != os::never && (next != nullptr || p != timed)) search::tell_watcher(*p, until);
    leaving.record(*p,
                   kind == park_kind::user ? trace_wait::user
                   : until != os::never    ? trace_wait::sleep
                                           : trace_wait::library,
                   next);
    leaving.to(next, leaving.then(&finish_park<kind>));
    return take_reason(self);
}

// Takes back a mark that a deadline or a stop left after something else had ended the wait.
void clear(parkable& self, std::uint32_t mark) noexcept {
    if ((self.word.load(base::relaxed) & mark) != 0) self.word.fetch_and(~mark, base::relaxed);
}

class announced_wait {
public:
    // sync(park.announce): sees the functions' own data.
    announced_wait() noexcept : to_{on_plain_wait.load(base::acquire)} {
        if (to_ != nullptr) [[unlikely]]
            to_->begins();
    }
    ~announced_wait() {
        if (to_ != nullptr) [[unlikely]]
            to_->has_ended();
    }
    announced_wait(const announced_wait&) = delete;
    announced_wait& operator=(const announced_wait&) = delete;

private:
    const plain_wait* const to_;
};

template <park_kind kind>
reason park_thread(parkable& self, os::nanoseconds until) noexcept {
    if (!commit<kind>(self)) return take_reason(self);
    const announced_wait announced;
    std::optional<os::at_rest> without_limit;
    if (until == os::never) without_limit.emplace();
    for (;;) {
        // relaxed: take_reason() acquires.
        const std::uint32_t seen = self.word.load(base::relaxed);
        if ((seen & parked_bit<kind>) == 0) return take_reason(self);
        if (!os::futex_wait(self.word, seen, until)) {
            if (!claim_for(self, reason::deadline)) clear(self, parkable::expired);
            return take_reason(self);
        }
    }
}

template <park_kind kind>
reason park_here(os::nanoseconds until, processor* timed) noexcept {
    const here at;
    if (at.self == nullptr) return park_thread<kind>(plain_thread(), os::never);
    return depart(at.on, at.self, [=](auto leaving) UMS_INLINED {
        return park_fiber<kind>(leaving, until, timed);
    });
}

// The processor that the carrier holds; if it has none, any of the fiber's cluster, for its timers.
processor& some_processor(carrier_core& c) noexcept {
    processor* p = c.proc.get();
    return p != nullptr ? *p : c.running.get()->home_cluster.get()->successor();
}

template <park_kind kind>
reason park_until(os::nanoseconds until) noexcept {
    const here at;
    if (at.self == nullptr) return park_thread<kind>(plain_thread(), until);
    if (until == os::never) return park_here<kind>(os::never, nullptr);
    fiber& self = *at.self;
    processor& p = some_processor(*at.on);
    fiber_timer timer{self};
    timer.at = until;
    p.timers.add(timer);
    const reason why = park_here<kind>(until, &p);
    if (!p.timers.cancel(timer) && why != reason::deadline) clear(self, parkable::expired);
    return why;
}

template <park_kind kind>
reason park_any(os::nanoseconds until, const std::stop_token* stop) noexcept {
    if (stop == nullptr || !stop->stop_possible()) return park_until<kind>(until);
    parkable& self = this_parkable();
    reason why;
    {
        // Runs at once if the stop has been requested already.
        std::stop_callback on_stop{*stop, [&self] {
                                       if (claim_for(self, reason::stop)) resume(self);
                                   }};
        why = park_until<kind>(until);
        // Its destructor waits for a callback that is running on another kernel thread. A callback
        // that ran on this carrier has returned, and is not waited for.
        if (stop->stop_requested()) come_after_processor();
    }
    clear(self, parkable::stopped);
    return why;
}

void release_lock(const after_switch& h, carrier_core&) noexcept {
    os::lock_word::release(*static_cast<std::uint32_t*>(h.other),
                           static_cast<std::uint32_t>(h.word));
}

}  // namespace

constinit base::atomic<const plain_wait*> on_plain_wait{nullptr};

parkable& plain_thread() noexcept { return thread_parkable; }

std::uint32_t take_aside(fiber& f) noexcept {
    std::uint32_t seen = f.word.load(base::relaxed);
    for (;;) {
        if ((seen & parkable::any_parked) == 0) return 0;
        const std::uint32_t bits = seen & parkable::of_the_park;
        // sync(park): sees the saved registers, as a waker does.
        if (f.word.compare_exchange(seen, seen & ~bits, base::acquire, base::relaxed)) return bits;
    }
}

void park_again(fiber& f, std::uint32_t bits) noexcept {
    const std::uint32_t notes = bits & ~parkable::any_parked;
    const bool parked = (bits & parkable::parked) != 0 ? commit<park_kind::internal>(f, notes)
                                                       : commit<park_kind::user>(f, notes);
    if (!parked) resume(f);
}

bool may_look_again() noexcept {
    const here at;
    if (at.self == nullptr) return true;
    // If it is null, the processor was handed off, and the caller waits for the thread that gives
    // it back.
    const processor* p = at.at();
    if (p == nullptr || p->looks_stranded() || p->has_policy()) return false;
    const idle_set::counts others = p->home().idle.look();
    return p->home().active() > others.idle + others.searching + 1;
}

void call_new() noexcept {
    const here at;
    if (at.self == nullptr) return;
    const processor* const hint = at.at();
    if (hint == nullptr || !hint->ready.has_new()) return;
    if (processor* const p = at.enter()) {
        p->ready.call_new();
        at.leave();
    }
}

void park(park_kind kind) noexcept {
    kind == park_kind::user ? park_here<park_kind::user>(os::never, nullptr)
                            : park_here<park_kind::internal>(os::never, nullptr);
}

reason park(park_kind kind, os::nanoseconds until, const std::stop_token* stop) noexcept {
    return kind == park_kind::user ? park_any<park_kind::user>(until, stop)
                                   : park_any<park_kind::internal>(until, stop);
}

void come_after_processor() noexcept {
    const here at;
    if (at.self == nullptr || at.enter() == nullptr) return;
    at.on->ownership.publish();
    at.self->race.enter();  // Ordered, unlike leave().
    at.on->ownership.let_go();
}

bool park_holding(std::uint32_t& lock, std::uint32_t next_word) noexcept {
    const here at;
    if (at.self == nullptr || at.on->exceptions->active()) return false;
    processor* p = at.enter();
    if (p == nullptr) [[unlikely]]
        return false;
    fiber* next = p->ready.pop_within_round();
    if (next == nullptr) {
        at.leave();
        return false;
    }
    at.self->is_held.set(true);
    departure<false> leaving{at.on, at.self};
    leaving.record(*p, trace_wait::library, next);
    leaving.to(next, leaving.then(&release_lock, &lock, next_word));
    // After resume_held() or inside::wake(). The queue that the fiber went through has ordered the
    // two.
    arch::happens_after(at.self);
    arch::happens_after(&lock);
    return true;
}

}  // namespace ums::sched
