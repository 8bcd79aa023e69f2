// SPDX-License-Identifier: MIT
//
// A spare waits on its own `turn`. Only the thread that has taken it out of the list of spares,
// under the lock, may write that word. So a spare is given one processor or told to end, never
// both; a spare that wakes up at its time limit, and is still in the list, takes itself out.
//
// Why no blocked carrier that wants a spare is forgotten: it is put into `wanting_` under the lock
// when there is no spare. Every carrier that becomes a spare first looks there under the same lock.
// It looks again if a carrier came while it looked (`wants_`), because the thread that put it there
// counted the spare as available.
//
// Why no carrier that was refused a permit is forgotten once a permit is free: the thread that
// refuses puts it into `wanting_` under the lock, then looks for a free permit; the thread that
// frees a permit does so, then looks at `wanting_` under the lock. The second of the two sees what
// the first has done, and sends a spare to look.
//
// The allocator is not called under the lock: a fiber may be stopped inside the allocator, and the
// thread that stops it takes the lock.
#include "sched/block/carrier_pool.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sched.h>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "carry/maker.hpp"
#include "os/futex.hpp"
#include "os/say.hpp"
#include "os/thread/thread_state.hpp"
#include "sched/block/hand_off.hpp"
#include "sched/block/stop.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"
#include "ums/this_fiber.hpp"

namespace ums::sched {

namespace {

// How long a fiber may run without a processor, at least: then it is stopped at a scheduler tick.
// If it blocks again within that time, no processor was troubled for it, and no detector had to
// find it.
constexpr os::nanoseconds grace = 640'000;

// Unless /proc says that it runs.
bool may_be_blocked(int tid) noexcept {
    os::thread_states states;
    return states.open() != 0 || states.look(tid).what != os::thread_states::kind::running;
}

void* run_carrier(void* it) noexcept {
    static_cast<carrier*>(it)->run();
    return nullptr;
}

}  // namespace

carrier_pool::~carrier_pool() {
    while (carrier* c = all_) {
        all_ = c->next_made;
        delete c;
    }
}

// Call without the lock. Returns a carrier without a kernel thread.
carrier& carrier_pool::new_carrier() {
    {
        const os::lock_guard guard{lock_};
        if (carrier* c = base::chain::pop_front(unused_, &carrier::next)) {
            UMS_ASSERT(c->proc.get() == nullptr && c->running.get() == nullptr,
                       "an unused carrier carries something");
            return *c;
        }
    }
    auto* made = new carrier(*this);
    const os::lock_guard guard{lock_};
    base::chain::push_front(all_, *made, &carrier::next_made);
    return *made;
}

// Requires: the lock.
void carrier_pool::count_new() noexcept {
    ++counters_.now;
    ++counters_.made;
    counters_.peak = std::max(counters_.peak, counters_.now);
}

// For a carrier whose kernel thread is gone, or never existed.
void carrier_pool::discard(carrier& c) noexcept {
    const os::lock_guard guard{lock_};
    UMS_ASSERT(counters_.now != 0, "a pool has lost count of its carriers");
    --counters_.now;
    put_unused(c);
}

// Requires: the lock.
void carrier_pool::put_unused(carrier& c) noexcept {
    UMS_ASSERT(!c.thread.is_started(), "a carrier is put away with its kernel thread");
    base::chain::push_front(unused_, c, &carrier::next);
}

void carrier_pool::keep_spare() noexcept { carry::maker::ask(*this); }

// Call without the lock. A new carrier gets its first processor, and counts from now on.
void carrier_pool::occupy(carrier& c, processor& p) noexcept {
    lock_.acquire();
    stopping_ = false;
    count_new();
    lock_.release();
    c.turn.set(turn_word::holds);
    c.proc.publish(&p);  // sync(carrier.proc)
    p.set_holder(&c);
    c.ownership.occupy();
}

void carrier_pool::hold(processor& p) {
    carrier& c = new_carrier();
    try {
        detection::begin(p);
    } catch (...) {
        const os::lock_guard guard{lock_};
        put_unused(c);
        throw;
    }
    occupy(c, p);
    const int error = carry::maker::start(c.thread, &run_carrier, &c);
    if (error == 0) return;
    p.set_holder(nullptr);
    c.proc.set(nullptr);
    c.ownership.vacate();
    discard(c);
    forget(p);
    throw std::system_error{error, std::generic_category(),
                            "ums: no kernel thread for another processor"};
}

carrier& carrier_pool::adopt(processor& p) {
    carrier& c = new_carrier();
    occupy(c, p);
    return c;
}

void carrier_pool::join(carrier& c) noexcept {
    if (c.is_adopted) return;  // It is a spare from now on.
    UMS_ASSERT(c.proc.get() == nullptr && c.running.get() == nullptr,
               "a carrier has ended that carries something");
    c.thread.join();  // The thread was started, and has been told to end or ends by itself.
    discard(c);
}

void carrier_pool::stop() noexcept {
    lock_.acquire();
    stopping_ = true;
    lock_.release();
    carry::maker::forget(*this);
    lock_.acquire();
    while (carrier* c = base::chain::pop_front(spares_, &carrier::next)) {
        c->turn.set(turn_word::shall_end);
        c->turn.wake();
    }
    ended_ = wanting_ = nullptr;
    stopped_list_.clear();
    looks_at_refused_ = false;
    wanting_count_ = 0;
    lock_.release();
    for (carrier* c = all_; c != nullptr; c = c->next_made)
        if (c->thread.is_started()) c->thread.join();
    // Once more, because a spare that has ended meanwhile may have asked late.
    carry::maker::forget(*this);
    unused_ = nullptr;
    for (carrier* c = all_; c != nullptr; c = c->next_made) {
        c->is_wanting = false;
        base::chain::push_front(unused_, *c, &carrier::next);
    }
    counters_.now = counters_.spare = 0;
}

void carrier_pool::reap() noexcept {
    for (;;) {
        lock_.acquire();
        // stop() joins them all.
        carrier* c = stopping_ ? nullptr : base::chain::pop_front(ended_, &carrier::next);
        lock_.release();
        if (c == nullptr) return;
        join(*c);
    }
}

carry::crew::outcome carrier_pool::work() noexcept {
    reap();
    const bool was_refused = !make_spares();
    return {was_refused, look_at_refused() ? told_after : 0};
}

bool carrier_pool::make_spares() noexcept {
    for (;;) {
        lock_.acquire();
        const bool wanted = lacks_spare();
        if (wanted) {
            count_new();
            // Counted from now on, so that no caller asks for another one meanwhile.
            ++counters_.spare;
        }
        lock_.release();
        if (!wanted) {
            has_complained_ = false;
            return true;
        }
        carrier* c = nullptr;
        int error = ENOMEM;
        try {
            c = &new_carrier();
            c->turn.set(turn_word::waits);
            error = c->thread.start(&run_carrier, c);
            if (error == 0) continue;
        } catch (const std::bad_alloc&) {
        }
        // As at the bound: a carrier that blocks keeps its processor until another comes back.
        lock_.acquire();
        --counters_.spare;
        --counters_.now;
        --counters_.made;
        counters_.refused += wanting_count_;
        if (c != nullptr) put_unused(*c);
        lock_.release();
        if (!std::exchange(has_complained_, true))
            os::say(
                "no kernel thread could be made for cluster %s (%s): while fibers are blocked in "
                "the kernel others may wait for them; it is tried again (%s)",
                home_.name().c_str(), std::strerror(error), os::kernel_thread::advice(error));
        return false;
    }
}

// Requires: the lock.
void carrier_pool::push_wanting(carrier& c) noexcept {
    if (!c.is_wanting) {
        c.is_wanting = true;
        base::chain::push_back(wanting_, c, &carrier::next_wanting);
        ++wanting_count_;
    }
    const std::uint64_t seen = c.activity();
    if (std::exchange(c.wanting_since, seen) != seen) c.wanting_from = os::now();
}

// Requires: the lock.
carrier* carrier_pool::pop_wanting() noexcept {
    carrier* c = base::chain::pop_front(wanting_, &carrier::next_wanting);
    if (c == nullptr) return nullptr;
    UMS_ASSERT(wanting_count_ != 0 && c->is_wanting,
               "a pool has lost count of the carriers that want a spare");
    --wanting_count_;
    c->is_wanting = false;
    return c;
}

// Requires: the lock.
carrier* carrier_pool::pop_spare(int cpu) noexcept {
    carrier** at = &spares_;
    if (cpu >= 0)
        for (int i = 0; i < 8 && *at != nullptr && (*at)->cpu.get() != cpu; ++i) at = &(*at)->next;
    if (*at == nullptr || (*at)->cpu.get() != cpu) at = &spares_;
    carrier* c = *at;
    if (c != nullptr) *at = c->next;
    return c;
}

carrier* carrier_pool::take_spare(carrier* blocked, int cpu) noexcept {
    lock_.acquire();
    carrier* c = pop_spare(cpu);
    if (c != nullptr) {
        --counters_.spare;
        ++counters_.hand_offs;
    } else {
        push_wanting(*blocked);
        ++wants_;
    }
    lock_.release();
    return c;
}

void carrier_pool::replenish() noexcept {
    lock_.acquire();
    const bool ask = lacks_spare();
    lock_.release();
    if (ask) carry::maker::ask(*this);
}

carrier* carrier_pool::take_ready_spare() noexcept {
    lock_.acquire();
    carrier* c = base::chain::pop_front(spares_, &carrier::next);
    if (c != nullptr) --counters_.spare;
    const bool ask = lacks_spare();
    lock_.release();
    if (ask) carry::maker::ask(*this);
    return c;
}

// Goes through the spare's own thread, which first looks whether a carrier wants it.
void carrier_pool::put_back(carrier& spare) noexcept { run(spare); }

void carrier_pool::run(carrier& spare) noexcept {
    spare.turn.set(turn_word::holds);
    spare.turn.wake();
}

// Takes the processor of a carrier that had to wait for a spare. Called with the lock, and returns
// with it.
bool carrier_pool::serve_wanting(carrier& self) noexcept {
    std::uint64_t seen;
    do {
        seen = wants_;
        // A carrier that is refused a permit comes back to the end of the list, so that the spare
        // looks at each.
        for (unsigned n = wanting_count_; n != 0; --n) {
            carrier* blocked = pop_wanting();
            if (blocked == nullptr) break;
            const std::uint64_t since = blocked->wanting_since;
            lock_.release();
            const bool took = hand_off::take_over(*blocked, self, since);
            lock_.acquire();
            if (took) return true;
        }
    } while (wants_ != seen);
    return false;
}

void carrier_pool::serve_refused() noexcept {
    lock_.acquire();
    const bool any = wanting_ != nullptr;
    carrier* spare = any ? base::chain::pop_front(spares_, &carrier::next) : nullptr;
    if (spare != nullptr) --counters_.spare;
    if (any) ++wants_;  // For a spare that is looking at this moment.
    const bool ask = any && spare == nullptr && lacks_spare();
    lock_.release();
    if (spare != nullptr) put_back(*spare);
    if (ask) carry::maker::ask(*this);
}

int carrier_pool::take_relief(carrier*& relief) noexcept {
    if (!permits_.try_take(most_permits())) return EAGAIN;
    while ((relief = take_ready_spare()) == nullptr) {
        lock_.acquire();
        const bool may_make = counters_.now < bound();
        if (may_make) count_new();
        lock_.release();
        if (may_make) {
            const int error = make_relief(relief);
            if (error != 0) {
                give_permit();
                return error;
            }
            break;
        }
        // There are as many as may be, but the permit says that one of them has nothing to do. It
        // is counted, and about to come into the list; or it has left a processor that is being
        // removed, and the fiber that removes it is about to join it, perhaps on this processor.
        this_fiber::yield();
        sched_yield();
    }
    begin_rest();
    return 0;
}

// Makes a carrier that is counted already.
int carrier_pool::make_relief(carrier*& relief) noexcept {
    try {
        relief = &new_carrier();
    } catch (const std::bad_alloc&) {
        const os::lock_guard guard{lock_};
        --counters_.now;
        return ENOMEM;
    }
    relief->stand_by();
    const int error = carry::maker::start(relief->thread, &run_carrier, relief);
    if (error == 0) return 0;
    relief->keeping.stands_by.set(false);
    discard(*relief);
    return error;
}

void carrier_pool::give_relief(carrier* relief) noexcept {
    if (relief != nullptr) put_back(*relief);
    end_rest();
    give_permit();
}

bool carrier_pool::wait_for_processor(carrier& self) noexcept {
    if (self.keeping.stands_by.get()) {
        self.keeping.stands_by.set(false);
        while (self.turn.now() == turn_word::waits) self.turn.wait_while(turn_word::waits);
        return true;  // With a processor, or put back.
    }
    if (self.proc.get() != nullptr) return true;  // Made to hold it.
    // Its own to read as long as it is in no list.
    const turn_word::state was = self.turn.now();
    if (was == turn_word::shall_end) return false;
    lock_.acquire();
    if (was == turn_word::holds) {
        ++counters_.spare;
        self.turn.set(turn_word::waits);
    }
    bool took = false;
    if (!stopping_) took = serve_wanting(self);
    const bool ends = stopping_;
    if (took || ends) {
        --counters_.spare;
    } else {
        base::chain::push_front(spares_, self, &carrier::next);
    }
    const bool ask = took && lacks_spare();
    lock_.release();
    if (took) self.turn.set(turn_word::holds);
    if (ask) carry::maker::ask(*this);
    if (took || ends) return took;

    os::nanoseconds until = os::now() + linger;
    for (;;) {
        const turn_word::state now = self.turn.now();
        if (now == turn_word::holds) return true;
        if (now == turn_word::shall_end) return false;
        if (self.turn.wait_while(turn_word::waits, until)) continue;
        lock_.acquire();
        const bool is_last = counters_.spare == 1 || self.is_adopted;
        const bool mine = !is_last && base::chain::try_remove(spares_, self, &carrier::next);
        if (mine) {
            --counters_.spare;
            ++counters_.ended;
            base::chain::push_front(ended_, self, &carrier::next);
        }
        lock_.release();
        if (mine) {
            carry::maker::ask(*this);
            return false;
        }
        // The last spare stays, and an adopted one. Or somebody has taken this one, and is about to
        // say what for.
        until = os::never;
    }
}

// At least one more than there are processors, because processors may be added while the cluster
// runs.
unsigned carrier_pool::bound() const noexcept { return std::max(most_, home_.active() + 1); }

// Leaves out the carriers that the processors themselves need.
unsigned carrier_pool::most_permits() const noexcept { return bound() - home_.active(); }

void carrier_pool::take_permit() noexcept { permits_.take(most_permits()); }

void carrier_pool::give_permit() noexcept {
    if (!permits_.give()) serve_refused();
}

bool carrier_pool::borrow_permit(carrier& c) noexcept {
    const bool there = permits_.try_take(most_permits());
    c.has_borrowed = there;
    return there;
}

void carrier_pool::look_again_at_refused() noexcept {
    if (permits_.any_free(most_permits())) serve_refused();
}

carrier* carrier_pool::stopped_or_refuse(carrier& c) noexcept {
    lock_.acquire();
    carrier* k = pop_stopped();
    bool ask = false;
    if (k != nullptr) {
        ++counters_.hand_offs;
    } else {
        ++counters_.refused;
        push_wanting(c);
        ask = !std::exchange(looks_at_refused_, true);
    }
    lock_.release();
    if (ask) carry::maker::ask(*this);
    return k;
}

bool carrier_pool::look_at_refused() noexcept {
    lock_.acquire();
    if (!looks_at_refused_ || has_told_bound_) {
        lock_.release();
        return false;
    }
    // Otherwise it wants a spare that is being made.
    const bool is_bound = permits_.used() >= most_permits();
    const os::nanoseconds now = os::now();
    bool any = false;
    int stuck = 0;
    for (const carrier* c = wanting_; c != nullptr && is_bound; c = c->next_wanting) {
        // sync(carrier.proc): it may hold one by now that was made after it was listed.
        const processor* p = c->proc.take();
        if (p == nullptr || c->activity() != c->wanting_since) continue;  // It has gone on.
        any = true;
        if (now - c->wanting_from >= told_after && p->looks_wanted()) stuck = c->tid.get();
    }
    looks_at_refused_ = any;
    lock_.release();
    // It may be back from its call, and computing. The detector that found it knows no more than
    // that.
    if (stuck == 0 || !may_be_blocked(stuck)) return any;
    has_told_bound_ = true;
    os::say(
        "cluster %s has the %u kernel threads that it may have: a fiber that is blocked in the "
        "kernel has kept its "
        "processor for a second while others wait for it (see UMS_CARRIERS, options::carriers)",
        home_.name().c_str(), bound());
    return false;
}

bool carrier_pool::take_or_stop(carrier& c) noexcept {
    UMS_ASSERT(c.proc.get() == nullptr && c.has_borrowed,
               "a carrier looks for a processor that it need not have");
    lock_.acquire();
    while (carrier* blocked = pop_wanting()) {
        const std::uint64_t since = blocked->wanting_since;
        lock_.release();
        if (hand_off::exchange(*blocked, c, since)) return true;
        lock_.acquire();
    }
    stopped_list_.push(c);
    stopped_.fetch_add(1, base::seq_cst);  // A read-modify-write: see idle_set.hpp.
    lock_.release();
    return false;
}

// Requires: the lock.
carrier* carrier_pool::pop_stopped() noexcept {
    for (;;) {
        carrier* c = stopped_list_.pop();
        if (c == nullptr) return nullptr;
        // relaxed: a reader that sees too many finds the list empty.
        const unsigned before = stopped_.fetch_sub(1, base::relaxed);
        UMS_ASSERT(before != 0, "a pool has lost count of its stopped carriers");
        UMS_ASSERT(c->proc.get() == nullptr, "a stopped carrier is listed, and holds a processor");
        turn_word::state seen = turn_word::stopped;
        if (c->turn.change(seen, turn_word::given)) return c;
        // It was released before it was listed: it runs, or already waits until a processor
        // reaches its place.
        c->turn.set(turn_word::holds);
        c->turn.wake();
    }
}

// A carrier that is not on the list may be in a queue: its place stays there. Or it is about to get
// a processor, or to be listed: then the thread that takes it off the list lets it run on.
void carrier_pool::release(carrier& c) noexcept {
    lock_.acquire();
    const bool listed = stopped_list_.try_remove(c);
    if (listed) stopped_.fetch_sub(1, base::relaxed);  // relaxed: as in pop_stopped().
    lock_.release();
    if (listed) {
        c.turn.set(turn_word::holds);  // As in pop_stopped(), it may have been released before.
    } else {
        turn_word::state seen = turn_word::stopped;
        if (!c.turn.change(seen, turn_word::runs_on)) return;
    }
    c.turn.wake();
}

void carrier_pool::begin_waiting(carrier& c) noexcept {
    c.stopping.waits_for_turn.set(true);
    waiting_.fetch_add(1, base::release);  // sync(pool.waiting)
    // A detector that found no carrier of interest meanwhile may have gone to sleep.
    detection::runs();
}

void carrier_pool::end_waiting(carrier& c) noexcept {
    c.stopping.waits_for_turn.set(false);
    // relaxed: a count that is too high only makes a detector look.
    waiting_.fetch_sub(1, base::relaxed);
}

// With time slices the fibers that run are stopped in turn, after two slices at most: what comes
// after this is needed only where that fails.
os::nanoseconds carrier_pool::patience() const noexcept {
    return std::max(stop::patience, 3 * time_slice);
}

os::nanoseconds carrier_pool::release_if_stuck(os::nanoseconds now) noexcept {
    const std::uint64_t activity = home_.activity();
    // While the cluster is paused nothing switches, and all are meant to wait.
    if (std::exchange(seen_activity_, activity) != activity || home_.is_paused()) seen_since_ = now;
    // sync(pool.waiting): sees the carriers that wait.
    if (waiting_.load(base::acquire) == 0) {
        seen_since_ = now;
        return os::never;
    }
    const os::nanoseconds patience = this->patience();
    if (now - seen_since_ < patience) return patience - (now - seen_since_);
    seen_since_ = now;
    lock_.acquire();
    carrier* c = all_;
    lock_.release();
    for (; c != nullptr; c = c->next_made)
        if (c->stopping.waits_for_turn.get()) release(*c);
    return patience;
}

carrier* carrier_pool::take_stopped() noexcept {
    const os::lock_guard guard{lock_};
    return pop_stopped();
}

void carrier_pool::give_borrowed_permit(carrier& c) noexcept {
    if (!c.has_borrowed) return;
    c.has_borrowed = false;
    give_permit();
}

void carrier_pool::pass_permit_on(carrier& from, carrier& to) noexcept {
    UMS_ASSERT(from.has_borrowed && !to.has_borrowed,
               "a permit is passed on that is not there, or to one that has one");
    from.has_borrowed = false;
    from.stopping.interrupt.disarm();  // It no longer needs to be stopped.
    to.has_borrowed = true;
    go_away(to);
}

void carrier_pool::go_away(carrier& c) noexcept {
    UMS_ASSERT(c.proc.get() == nullptr, "a carrier goes away with its processor");
    if (c.has_borrowed) c.stopping.interrupt.arm_coarse(c.tid.get(), grace);
}

void carrier_pool::come_back(carrier& c) noexcept {
    if (!c.has_borrowed) return;
    c.stopping.interrupt.disarm();  // It no longer needs to be stopped.
    give_borrowed_permit(c);
}

carrier_counters carrier_pool::counters() noexcept {
    const os::lock_guard guard{lock_};
    carrier_counters all = counters_;
    all.waits = permits_.waits();
    return all;
}

void carrier_pool::count_stop(bool preempted) noexcept {
    const os::lock_guard guard{lock_};
    ++(preempted ? counters_.preemptions : counters_.stops);
}

void carrier_pool::count_hand_off() noexcept {
    const os::lock_guard guard{lock_};
    ++counters_.hand_offs;
}

}  // namespace ums::sched
