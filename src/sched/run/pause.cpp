// SPDX-License-Identifier: MIT
//
// Why no fiber runs once begin() has returned: a processor runs a fiber only after its carrier's
// loop has found times_ to be 0 since it last rested. A processor that leaves its rest clears
// is_resting, then reads times_. A pauser raises times_, then reads is_resting. All of this is
// sequentially consistent: if the pauser still finds the processor resting, the processor sees the
// pause, and rests again. A processor without a holder runs nothing; a carrier that takes it
// begins in the loop.
//
// Why begin() returns: an idle processor is notified, and driver keeps a notification that comes
// too early. One that switches reads times_ at its slice's end. One that computes is interrupted,
// again and again, since an interrupt may be put off. The rester sets is_resting, then changes
// rests_; the pauser reads rests_, looks, then sleeps only if rests_ is still the same. The end of
// a retiring processor changes nothing there, but the pauser looks again after `wait` anyway.
//
// Why no rest is for ever: end(), and whatever asks a processor to retire, changes the state
// first and rest_changes_ then; the rester reads rest_changes_, looks at the state, then sleeps
// only if rest_changes_ is still the same.
//
// Why no work is lost: a processor that leaves its rest goes through the whole search. Whatever
// was made ready during the pause was made so before, and an idle processor that was woken for it
// rests, or searches.
#include "sched/run/pause.hpp"

#include <algorithm>
#include <system_error>

#include "os/futex.hpp"
#include "os/no_stop.hpp"
#include "sched/block/stop.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/here.hpp"
#include "ums/blocking.hpp"

namespace ums::sched {

void pausing::rest(processor& p) noexcept {
    for (;;) {
        // sync(pause): before what look_again() is about is read.
        const std::uint32_t seen = rest_changes_.load(base::seq_cst);
        if (!is_on() || p.retirement.is_asked.load(base::seq_cst)) break;
        if (!p.is_resting.load(base::relaxed)) {
            p.is_resting.store(true, base::seq_cst);
            // sync(pause): the pauser sees what the fibers of this processor did.
            rests_.fetch_add(1, base::seq_cst);
            os::futex_wake(rests_.address(), 1 << 30);
        }
        os::futex_wait(rest_changes_, seen);
    }
    p.is_resting.store(false, base::seq_cst);
}

void pausing::look_again() noexcept {
    rest_changes_.fetch_add(1, base::seq_cst);  // sync(pause)
    os::futex_wake(rest_changes_.address(), 1 << 30);
}

// Without a holder nothing runs there: it is retired, or is being made, and its first carrier will
// see the pause.
bool pausing::all_rest() const noexcept {
    for (unsigned i = 0; i < of_.size(); ++i) {
        const processor& p = of_.at(i);
        if (!p.is_resting.load(base::seq_cst) && p.holder() != nullptr) return false;
    }
    return true;
}

void pausing::interrupt_all() noexcept {
    for (unsigned i = 0; i < of_.size(); ++i) {
        processor& p = of_.at(i);
        if (!p.is_resting.load(base::relaxed)) stop::end_time_slice(p, p.activity());
    }
}

void pausing::begin() {
    const here at_call;
    if (at_call.self != nullptr && at_call.self->home_cluster.get() == &of_)
        throw std::system_error{std::make_error_code(std::errc::resource_deadlock_would_occur),
                                "ums: a fiber cannot pause its own cluster"};
    times_.fetch_add(1, base::seq_cst);
    for (unsigned i = 0; i < of_.size(); ++i) of_.at(i).notify();  // The idle ones.
    if (all_rest()) return;
    const ums::blocking_region elsewhere;  // The caller's processor runs others meanwhile.
    // Those that switch soon need no signal. One that was put off, or lost, is sent again.
    for (os::nanoseconds wait = 50'000;; wait = std::min(2 * wait, os::nanoseconds{10'000'000})) {
        const os::nanoseconds until = os::now() + wait;
        for (;;) {
            // sync(pause): sees what was done there, before all_rest() looks.
            const std::uint32_t seen = rests_.load(base::seq_cst);
            if (all_rest()) return;
            if (!os::futex_wait(rests_, seen, until)) break;
        }
        interrupt_all();
    }
}

// The fibers that continue may be the last, and the thread that waited for them may delete the
// cluster.
void pausing::end() {
    const os::no_stop registered_here;
    const os::visit registered{of_.visitors_};
    std::uint32_t seen = times_.load(base::relaxed);
    do {
        if (seen == 0)
            throw std::system_error{std::make_error_code(std::errc::operation_not_permitted),
                                    "ums: a cluster was resumed that is not paused"};
        // sync(pause): what the pauser did is visible to the fibers that continue.
    } while (!times_.compare_exchange(seen, seen - 1, base::seq_cst, base::relaxed));
    if (seen == 1) look_again();
}

}  // namespace ums::sched
