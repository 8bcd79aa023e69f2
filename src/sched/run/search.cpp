// SPDX-License-Identifier: MIT
#include "sched/run/search.hpp"

#include <algorithm>
#include <utility>

#include "os/cpu/membarrier.hpp"
#include "os/no_stop.hpp"
#include "sched/fiber/access.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/unused_pages.hpp"

namespace ums::sched {

namespace {
constexpr std::uint32_t most_stolen = 8192;
constexpr os::nanoseconds first_sample = 50'000;
constexpr os::nanoseconds last_sample = 10'000'000;
constexpr unsigned timer_batch = 256;
constexpr os::nanoseconds standstill_after = 250'000'000;
constexpr unsigned most_looks = 3;  // Then it sleeps until something happens.
}  // namespace

bool (*on_standstill)() noexcept = nullptr;

fiber* search::find(processor& p, carrier& c) noexcept {
    cluster& home = p.home();
    bool searching = false;
    auto rescue = needed::none;
    unused_pages::have_run();
    bool runs_out = true;
    for (;;) {
        p.look_around(std::exchange(runs_out, false));
        // sync(retire): sees which caller asked, at the latest after the notify that follows the
        // request.
        if (p.retirement.is_asked.load(base::acquire)) {
            // Looks once more, because a producer may have woken no processor when it saw this
            // searcher.
            if (searching) stop_searching(p);
            set_runs_long(p, false);
            return nullptr;
        }
        if (home.is_paused()) [[unlikely]] {
            if (std::exchange(searching, false)) stop_searching(p);
            c.leave(c.race);
            home.pauses().rest(p);
            static_cast<void>(c.enter());  // As below.
            continue;
        }
        if (rescue != needed::none) fire_timers_of_others(p);
        // What is stuck comes first: else timers of this processor's own that come all the time
        // would put it off for ever.
        fiber* f = rescue == needed::by_stuck_work ? raid(p, true) : nullptr;
        if (f == nullptr) f = p.pick_counted();
        // A removed processor may still run a fiber, and have others.
        if (f == nullptr && home.size() > 1) {
            const auto seen = home.idle.look();
            if (!searching && seen.searching * 2 < home.active()) {
                home.idle.start_searching();
                searching = true;
            }
            if (searching) f = raid(p, rescue != needed::none);
            if (f == nullptr && searching) f = spin(p);
        }
        if (f != nullptr) {
            // It paid, so look again soon.
            if (rescue != needed::none) home.sample_period.set(first_sample);
            if (searching) {
                stop_searching(p);
                p.tell_of_long_runs();
            } else {
                p.offer_rest();
            }
            // A deadline here may be earlier than what the watcher waits for.
            if (p.next_deadline() != os::never) tell_watcher(p, p.next_deadline());
            return f;
        }

        if (!searching) home.idle.start_searching();
        set_runs_long(p, false);
        c.leave(c.race);
        home.idle.join(p);
        // The idler's side of the protocol in idle_set.hpp. A read-modify-write made the work in an
        // inbox or a policy visible, and a processor that is idle or searches now makes work only
        // after it has changed the set's word again, and then sees this join(). So only a processor
        // that runs calls for a fence. active() is read after join(): see add_processor().
        if (others_run(home)) os::heavy_fence();
        rescue = needed::none;
        if (!must_look_again(p)) {
            detection::rests(c.take_look());
            rescue = wait(p);
        }
        home.idle.quit(p);  // Or a waker has taken it out: either way it is searching now.
        searching = true;
        static_cast<void>(c.enter());  // It runs no fiber, so its processor has not been taken.
    }
}

// Finds work that a producer published before it read the idle set.
bool search::must_look_again(processor& p) noexcept {
    cluster& home = p.home();
    if (p.retirement.is_asked.load(base::seq_cst)) return true;
    if (!p.scattered.empty() || !p.pinned.empty() || !home.shared_inbox.empty()) return true;
    if (home.carriers.has_stopped()) return true;
    return home.looks_busy(p);
}

// The last searcher wakes a successor if there is more to take.
void search::stop_searching(processor& p) noexcept {
    cluster& home = p.home();
    const bool last = home.idle.stop_searching();
    const auto seen = home.idle.look();
    if (!last || seen.idle == 0) return;
    // A producer may have woken no processor because it saw this searcher. Its work is visible
    // after the fence; if no processor but this one runs, the only producers are those that use a
    // read-modify-write, or a policy's queue and a fence (cluster::wake_for_work()).
    // One that was removed, and searches for the last time, is not counted any more.
    const unsigned active = home.active();
    const bool others = active + (p.index() >= active ? 1 : 0) > seen.idle + seen.searching + 1;
    if (others)
        os::heavy_fence();
    else if (p.has_policy())
        base::full_fence();
    if (((others || p.has_policy()) && home.looks_busy(p)) || !home.shared_inbox.empty() ||
        home.carriers.has_stopped())
        p.wake_one();
    else if (p.looks_busy())
        p.offer_rest();
    // relaxed: another that has stopped searching has been no watcher since it changed the word.
    else if (home.needs_watcher() &&
             (home.watcher.load(base::relaxed) == nullptr || any_waits(home)))
        ask_watcher(home);  // For the run-next slots that were filled meanwhile, and for events.
}

bool search::set_runs_long(processor& p, bool it_does) noexcept {
    if (p.runs_long.load(base::relaxed) == it_does) return false;  // relaxed: the exchange decides.
    if (p.runs_long.exchange(it_does, base::relaxed) == it_does) return false;
    p.home().running_long.fetch_add(it_does ? 1 : ~std::uint32_t{0}, base::relaxed);
    // A processor that becomes idle at the same time joins the idle set, executes a heavy fence,
    // then reads the count: it needs a watcher, or ask_watcher() sees it idle.
    if (it_does) base::full_fence();
    return it_does;
}

void search::tell_watcher(processor& p, os::nanoseconds until) noexcept {
    cluster& home = p.home();
    if (home.active() <= 1 || !home.needs_watcher()) return;
    // Pairs with the watcher's, between watch_until and its look at the deadlines.
    base::full_fence();
    if (home.idle.look().idle != 0 && until < home.watch_until.load(base::relaxed))
        alert_watcher(home);
}

fiber* search::spin(processor& p) noexcept {
    cluster& home = p.home();
    if (home.spin() <= 0 || !others_run(home)) return nullptr;
    const os::nanoseconds until = os::now() + home.spin();
    do {
        for (int i = 0; i < 16; ++i) base::spin_pause();
        if (home.looks_busy(p) || !home.shared_inbox.looks_empty() || !p.scattered.looks_empty()) {
            fiber* f = p.pick_counted();
            if (f == nullptr) f = raid(p, false);
            if (f != nullptr) return f;
        }
    } while (os::now() < until);
    return nullptr;
}

fiber* search::raid(processor& thief, bool stranded_too) noexcept {
    cluster& home = thief.home();
    const unsigned n = home.size();
    const unsigned first = thief.random.below(n);
    // The nearest cache comes first where processors stay on their CPUs; elsewhere it is not known
    // where they run.
    const int nearest = home.pins() && n > 2 ? 1 : 3;
    for (int distance = nearest; distance <= 3; ++distance) {
        for (unsigned i = 0; i < n; ++i) {
            processor& victim = home.at((first + i) % n);
            if (&victim == &thief) continue;
            if (nearest != 3 && home.distance(thief, victim) != distance) continue;
            if (home.policy() != nullptr) {
                fiber* f = access::fiber_of(home.policy()->steal(thief.index(), victim.index()));
                if (f != nullptr) return f;
            }
            if (rob(thief, victim, stranded_too)) {
                fiber* f = thief.ready.pop();
                if (f != nullptr) return f;
            }
        }
    }
    return nullptr;
}

bool search::rob(processor& thief, processor& victim, bool stranded_too) noexcept {
    if (stranded_too && !victim.scattered.looks_empty()) {
        thief.take_in(victim.scattered.take_all());
        return true;
    }
    const bool slot_too = stranded_too && victim.ready.has_run_next();
    if (!victim.looks_busy() && !slot_too) return false;
    carrier* const holder = victim.holder();
    if (holder == nullptr || !holder->ownership.try_claim()) return false;
    if (!victim.is_held_by(*holder)) {
        holder->ownership.unclaim();
        return false;
    }
    const std::uint32_t n = thief.ready.steal(victim.ready, most_stolen, stranded_too);
    holder->ownership.unclaim();
    if (n == 0) return false;
    thief.counters.steals.add(1);
    thief.counters.stolen.add(n);
    if (thief.trace != nullptr) [[unlikely]]
        thief.trace->write(trace_event::steal, 0, n, victim.index());
    return true;
}

void search::fire_timers_of_others(processor& p) noexcept {
    cluster& home = p.home();
    const os::nanoseconds now = os::now();
    for (unsigned i = 0; i < home.size(); ++i) {
        processor& other = home.at(i);
        if (&other != &p && other.timers.next() <= now)
            p.take_in(p.fire(other.timers, now, timer_batch));
    }
}

bool search::others_run(const cluster& home) noexcept {
    const auto seen = home.idle.look();
    return home.active() > seen.idle + seen.searching;
}

os::nanoseconds search::earliest_deadline(const cluster& home) noexcept {
    os::nanoseconds least = os::never;
    for (unsigned i = 0; i < home.size(); ++i) least = std::min(least, home.at(i).timers.next());
    return least;
}

// Of processors that become idle at the same time, the last to join the idle set sees the others
// there.
bool search::nothing_can_run(const cluster& home) noexcept {
    return home.idle.look().idle >= home.active() && earliest_deadline(home) == os::never &&
           !home.carriers.any_away();
}

search::needed search::wait(processor& p) noexcept {
    cluster& home = p.home();
    p.counters.idles.add(1);
    home.end_process_if_over();
    if (home.active() > 1) {
        if (others_run(home) && !home.needs_watcher()) {
            wait_in_driver(p, p.next_deadline(), false);
            return needed::none;
        }
        processor* none = nullptr;
        // acquire, release: what the watcher owns.
        if (home.watcher.compare_exchange(none, &p, base::acquire, base::relaxed)) {
            const needed found = watch(p);
            // relaxed, both: a processor that runs and still finds what was there before has left
            // the idle set before the fence; or has added its deadline before it.
            home.watch_until.store(os::never, base::relaxed);
            home.watching.store(cluster::off, base::relaxed);
            home.watcher.store(nullptr, base::release);
            base::full_fence();
            // Another processor is to look after the running ones.
            if (others_run(home) && home.needs_watcher())
                if (processor* next = home.idle.claim_any(true, &p)) next->notify();
            return found;
        }
        // The watcher may have gone to sleep while nothing ran; or it rests, and a slot was filled
        // by a processor that did not ask because it saw this searcher. That is visible here: it
        // came before this one joined the idle set, and a fence followed. And one that rests is to
        // know that nothing runs any more, for what it does then (unused_pages::look()).
        // seq_cst: without others that run no fence followed. The watcher stores the word, executes
        // a fence, then reads the set. If it missed join(), a sequentially consistent
        // read-modify-write, then its fence comes before that, and before this load.
        const std::uint32_t watching = home.watching.load(base::seq_cst);
        if (others_run(home) ? watching == cluster::off || any_waits(home)
                             : watching == cluster::rests)
            ask_watcher(home);
    }
    wait_in_driver(p, p.next_deadline(), home.active() <= 1);
    return needed::none;
}

// If nothing of its cluster can run, first for a bounded time, then to say so if that is still so.
// A wake-up that comes meanwhile is kept by the driver. Of processors that wait, only the one that
// takes events wakes up to look for unused pages.
void search::wait_in_driver(processor& p, os::nanoseconds until, bool inside) noexcept {
    const cluster& home = p.home();
    const os::nanoseconds look_again = unused_pages::look();
    for (unsigned looks = 0; looks != most_looks && until == os::never; ++looks) {
        if (on_standstill == nullptr || !nothing_can_run(home)) break;
        const os::nanoseconds look_at = os::now() + standstill_after;
        p.wait(look_at, inside);
        if (!p.is_idle.get() || p.has_arrived() || os::now() < look_at || must_look_again(p))
            return;
        if (!nothing_can_run(home)) return;  // It may just have been asked to look.
        if (!on_standstill()) break;
    }
    p.wait(inside ? std::min(until, look_again) : until, inside);
}

// While nothing waits behind those that run there is nothing to look for, and a processor that
// fills its slot asks; so it asks, too, when the watcher is `off`, having seen that nothing ran. It
// pushes, then reads `watching` (processor::wake_help() has the light side of the fence); the
// watcher stores `rests`, executes a heavy fence, then looks once more. So either the pusher sees
// that it has to ask, or the watcher sees the fiber.
search::needed search::watch(processor& p) noexcept {
    cluster& home = p.home();
    bool looks = true;
    while (p.is_idle.get() && !p.retirement.is_asked.load(base::relaxed) && !home.is_paused()) {
        bool any_run = others_run(home);
        if (!any_run) {
            // A processor that leaves the idle set after the fence sees that none looks. One that
            // left before is seen here, and so is one that asked before.
            home.watching.store(cluster::off, base::relaxed);
            base::full_fence();
            any_run = others_run(home);
            looks = true;
            home.sample_period.set(first_sample);
        }
        if (any_run && !home.needs_watcher()) return needed::none;
        const bool samples = any_run && looks;
        // relaxed, both: others change the word only to ask, and a mark that is overwritten here
        // asks for what now comes, a sample and a second look.
        if (samples && home.watching.load(base::relaxed) < cluster::samples)
            home.watching.store(cluster::samples, base::relaxed);
        const os::nanoseconds period =
            std::clamp(home.sample_period.get(), first_sample, last_sample);
        // The last sample may be that of an earlier watcher, or of this one before it fired a
        // timer: else timers that come more often than samples would put these off for ever.
        const os::nanoseconds sample_at = home.sampled_at.get() + period;
        if (samples && sample_at <= os::now()) {
            const seen found = take_sample(p);
            home.sample_period.set(period * 2);  // find() sets it back if this has paid.
            if (found == seen::stuck) return needed::by_stuck_work;
            if (found == seen::nothing && !is_asked_again(home)) {
                home.sample_period.set(period);
                os::heavy_fence();
                looks = any_waits(home);
            }
            continue;
        }
        // A deadline may be added while this is computed. Its adder reads watch_until afterwards,
        // and the loop reads the deadlines again after storing it, each after a full fence.
        os::nanoseconds until = os::never;
        for (;;) {
            home.watch_until.store(until, base::relaxed);
            base::full_fence();
            os::nanoseconds least = earliest_deadline(home);
            if (samples) least = std::min(least, sample_at);
            if (least >= until) break;
            until = least;
        }
        wait_in_driver(p, until, true);
        if (!p.is_idle.get() || p.has_arrived()) return needed::none;
        if (earliest_deadline(home) <= os::now()) return needed::by_timers;
        // After a long rest as at first.
        if (!looks && os::now() - home.sampled_at.get() >= last_sample)
            home.sample_period.set(first_sample);
        looks = true;
    }
    return needed::none;
}

// The watcher has found nothing. Whether it was asked since it last looked: then what was ready has
// run by itself, and the watcher goes on with longer pauses, so as not to be woken each time.
// Otherwise it rests.
bool search::is_asked_again(cluster& home) noexcept {
    std::uint32_t now = cluster::samples;
    // relaxed, all: a heavy fence follows before it rests.
    if (home.watching.compare_exchange(now, cluster::rests, base::relaxed, base::relaxed))
        return false;
    home.watching.store(cluster::samples, base::relaxed);
    return true;
}

// Stuck: a processor that has not switched since the last sample has work waiting, or a ring has.
search::seen search::take_sample(processor& watcher) noexcept {
    cluster& home = watcher.home();
    seen found = seen::nothing;
    home.sampled_at.set(os::now());
    for (unsigned i = 0; i < home.size(); ++i) {
        processor& other = home.at(i);
        if (&other == &watcher) continue;
        const std::uint64_t now = other.activity();
        const bool moved = std::exchange(other.watched, now) != now;
        if (other.looks_busy() || (!moved && other.looks_stranded()))
            found = seen::stuck;
        else if (found == seen::nothing && other.looks_stranded())
            found = seen::waiting;
    }
    return found;
}

bool search::any_waits(const cluster& home) noexcept {
    for (unsigned i = 0; i < home.size(); ++i)
        if (home.at(i).looks_stranded()) return true;
    return false;
}

void search::ask_watcher(cluster& home) noexcept {
    const os::no_stop marked_and_nobody_told;
    // seq_cst: the caller may have left the idle set, see watch().
    std::uint32_t now = home.watching.load(base::seq_cst);
    while (now == cluster::samples || now == cluster::rests) {
        const bool rests = now == cluster::rests;
        // acquire: that the watcher was idle before it rested is seen below.
        if (!home.watching.compare_exchange(now, cluster::asked, base::acquire, base::relaxed))
            continue;
        if (rests) alert_watcher(home);
        return;
    }
    if (now == cluster::off) alert_watcher(home);
}

// Tells the watcher, or makes one.
void search::alert_watcher(cluster& home) noexcept {
    const os::no_stop claimed_and_not_yet_woken;
    if (home.idle.look().idle == 0) return;
    // seq_cst: if it still finds one that leaves, that one sees that the caller runs, see wait().
    // Beside a searcher none is claimed: it becomes the watcher if it finds nothing, and the last
    // one that finds something asks for one.
    if (processor* w = home.watcher.load(base::seq_cst))
        w->notify();
    else if (processor* any = home.idle.claim_any(false))
        any->notify();
}

void search::give_all_away(processor& p) noexcept {
    while (fiber* f = p.ready.pop()) ready::at_home(*f);
    while (fiber* f = p.ready.pop_pinned()) ready::at_home(*f);
    p.stacks.spill(0);
}

}  // namespace ums::sched
