// SPDX-License-Identifier: MIT
#include "sched/run/processor.hpp"

#include <algorithm>
#include <sched.h>
#include <utility>

#include "base/assert.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/no_stop.hpp"
#include "sched/fiber/access.hpp"
#include "sched/lock/bias.hpp"
#include "sched/queue/depot.hpp"
#include "sched/run/here.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/search.hpp"
#include "sched/run/spread.hpp"

namespace ums::sched {

namespace {
constexpr os::nanoseconds long_run = 100'000;      // On average in a round.
constexpr os::nanoseconds longest_round = 50'000;  // For as long as runs last as before.
constexpr os::nanoseconds worth_a_wake = 50'000;
}  // namespace

processor::processor(cluster& home, unsigned index, std::uint64_t seed) noexcept
    : stacks{depot().default_class()}, random{seed}, home_{home}, index_{index} {
    asymmetric_ = os::asymmetric();
    race_.create_processor();
    bias::add(*this);
}

processor::~processor() {
    UMS_ASSERT(!is_idle.get() && holder() == nullptr, "a processor ends that is held, or idle");
    if (trace != nullptr) give_back(*trace);
    bias::remove(*this);
    race_.destroy_processor();
}

void processor::make_ready(fiber& f, place where) noexcept {
    // This runs at each wake-up and costs 4 % of a round trip, so it is not in a release build.
    UMS_DEBUG_ASSERT(belongs_here(f), "a fiber is made ready at a processor where it may not run");
    if (home_.policy() != nullptr && f.pinned_to.get() == nullptr)
        home_.policy()->ready(access::ref(&f), index_);
    else if (where == place::next)
        ready.push_next(f);
    else if (where == place::next_new)
        ready.push_new(f);
    else
        ready.push_back(f);
}

void processor::note_cpu() noexcept {
    if (home_.active() <= 1) return;
    const int here = sched_getcpu();
    if (here != last_cpu.get() || ready.rounds() % spread::period == 0) [[unlikely]]
        spread::arrived(*this, here);
}

// A round begins: how long were the runs since the last one began? Returns how many switches this
// one may have, so that events and timers are not late.
std::uint32_t processor::note_runs() noexcept {
    const os::nanoseconds now = os::now();
    const os::nanoseconds began = std::exchange(round_began_, now);
    const std::uint64_t switches = ready.all_switches();
    const std::uint64_t before = std::exchange(switches_before_, switches);
    std::uint32_t length = run_queue::round;
    if (began != 0 && switches != before) {
        const os::nanoseconds each =
            (now - began) / static_cast<os::nanoseconds>(switches - before);
        // An interruption makes one run long; two in a few rounds are a habit.
        if (each > long_run)
            long_runs_ = std::min(long_runs_ + 4, 16U);
        else if (long_runs_ != 0)
            --long_runs_;
        length = static_cast<std::uint32_t>(
            std::clamp<os::nanoseconds>(longest_round / (each + 1), 1, run_queue::round));
    }
    if (search::set_runs_long(*this, long_runs_ > 4)) begins_long_ = true;
    return length;
}

// Inside, while something waits in the ring and another processor is idle. A wake-up costs some
// 20 us of CPU, so it is worth one only when something has waited for about as long: the cost is
// twice the least one at most, however long it would have waited. Otherwise the next switch looks
// again.
bool processor::has_waited() noexcept {
    const os::nanoseconds now = os::now();
    if (marked_at_ == 0 || static_cast<std::int32_t>(ready.head() - mark_) >= 0) {
        mark_ = ready.end();
        marked_at_ = now;
    } else if (now - marked_at_ >= worth_a_wake) {
        marked_at_ = 0;
        return true;
    }
    if (cut_ == 0) cut_ = ready.cut();
    return false;
}

// A processor that has just waited inside the engine already has what there was. And the last one
// of its cluster to run out of work waits there next, so it need not ask before that if it mostly
// finds nothing: an event that is there ends the wait at once. It asks one time in sixteen, to see
// whether that has changed, because where events keep coming, asking costs less than becoming idle.
// Where others run, which would have to take the event in, it always asks.
void processor::look_for_events(bool runs_out) noexcept {
    constexpr unsigned habit = 4, asks_each = 16;
    if (arrived_ != nullptr) return receive(std::exchange(arrived_, nullptr));
    const auto beside = home_.idle.look();
    const bool waits_next =
        runs_out && beside.searching == 0 && home_.active() <= beside.idle + 1 && !looks_wanted();
    const bool asks = looks_in_vain_ < habit || looks_in_vain_ % asks_each == 0;
    fiber* const list = !waits_next || asks ? waiting.poll() : nullptr;
    if (waits_next) looks_in_vain_ = list != nullptr ? 0 : looks_in_vain_ + 1;
    receive(list);
}

void processor::look_around(bool runs_out) noexcept {
    cut_ = 0;
    std::uint32_t length = pace_.round();
    if (home_.active() > 1 && !ready.always_looks()) length = std::min(length, note_runs());
    ready.start_round(length);
    // Also true when recording has to end.
    if (is_trace_wanted() != (trace != nullptr)) [[unlikely]]
        follow_trace_control(*this);
    visit_timers();
    look_for_events(runs_out);
}

fiber* processor::pick_at_round_end(fiber* yielder) noexcept {
    if (const std::uint32_t left = std::exchange(cut_, 0); left != 0) {
        // The round goes on; only has_waited() asked to be called again.
        ready.start_round(left);
        fiber* f = ready.pop();
        if (f == nullptr) f = pick_elsewhere_instead_of(yielder);
        offer_rest();
        return f;
    }
    if (has_policy() && yielder == nullptr)
        if (fiber* const stops = holder()->running.get();
            stops != nullptr && !stops->is_pinned.get())
            home_.policy()->left(access::ref(stops), index_);
    look_around();
    note_cpu();
    visit_inboxes();
    // The caller goes to the loop, which retires or rests.
    if (is_retiring() || home_.is_paused()) [[unlikely]]
        return nullptr;
    fiber* f = pick_after_visits(yielder);
    offer_rest();
    return f;
}

fiber* processor::pick_after_visits(fiber* yielder) noexcept {
    // The round is over for fibers that keep waking each other, too.
    if (!ready.always_looks()) {
        ready.end_run_next();
        ready.give_turn();
    }
    if (fiber* f = ready.pop_pinned_in_turn()) return f;
    if (fiber* f = pick_stopped()) return f;
    if (fiber* f = ready.pop()) return f;
    return pick_elsewhere_instead_of(yielder);
}

// Returned, not queued: a carrier that is refused a permit may need this fiber to continue, and
// finds it in the pool's list, but in no queue (sched/block/carrier_pool.hpp). While there are
// more, each second switch is theirs.
fiber* processor::pick_stopped() noexcept {
    carrier_pool& pool = home_.carriers;
    if (!pool.has_stopped()) return nullptr;
    carrier* c = pool.take_stopped();
    if (c == nullptr) return nullptr;
    if (pool.has_stopped()) {
        ready.end_soon(2);
        wake_one();
    }
    fiber* f = c->running.get();
    UMS_ASSERT(f != nullptr, "a stopped carrier is listed, and runs no fiber");
    return f;
}

// A pinned fiber that yields does not belong to the policy: it gives way to any.
fiber* processor::ask_policy(fiber* yielder) noexcept {
    policy& order = *home_.policy();
    return access::fiber_of(yielder != nullptr && !yielder->is_pinned.get()
                                ? order.instead_of(access::ref(yielder), index_)
                                : order.next(index_));
}

fiber* processor::pick_elsewhere_instead_of(fiber* yielder) noexcept {
    const bool has_batch = visit_inboxes();
    fiber* f = pick_stopped();
    if (f == nullptr) f = ready.pop();
    if (f == nullptr && has_policy()) f = ask_policy(yielder);
    if (f == nullptr) f = ready.pop_pinned();
    if (has_batch) offer_rest();
    return f;
}

bool processor::visit_inboxes() noexcept {
    take_in(pinned.take_all());
    take_in(scattered.take_all());
    if (home_.shared_inbox.looks_empty()) return false;
    take_in(home_.shared_inbox.take_all());
    return true;
}

void processor::offer_rest() noexcept {
    if (looks_busy() || (has_policy() && !home_.policy()->empty(index_))) wake_help();
    tell_of_long_runs();
}

void processor::tell_of_long_runs() noexcept {
    // relaxed: its own to write, but for the detector's mark.
    if (std::exchange(begins_long_, false) && runs_long.load(base::relaxed))
        search::ask_watcher(home_);
}

void processor::notify_of_deadline() noexcept {
    // seq_cst: pairs with remove_processor().
    (retirement.is_done.load(base::seq_cst) ? home_.successor() : *this).notify();
}

// The first processor looks after the sleepers of a retired one.
os::nanoseconds processor::next_deadline() const noexcept {
    os::nanoseconds least = timers.next();
    if (index_ == 0)
        for (unsigned i = home_.active(); i < home_.size(); ++i)
            least = std::min(least, home_.at(i).timers.next());
    return least;
}

void processor::visit_timers() noexcept {
    const os::nanoseconds next = next_deadline();
    if (next == os::never) return pace_.rest();
    const os::nanoseconds now = os::now();
    const unsigned most = pace_.look(now, next, ready);
    if (most == 0) return;
    take_in_front(fire(timers, now, most));
    if (index_ == 0)
        for (unsigned i = home_.active(); i < home_.size(); ++i)
            take_in(fire(home_.at(i).timers, now, timer_pace::most));
}

fiber* processor::fire(timer_queue& of, os::nanoseconds now, unsigned most) noexcept {
    fiber* const list = of.fire(now, most);
    if (trace != nullptr) [[unlikely]]
        trace_each(*trace, trace_event::timer, list);
    return list;
}

// Takes in fibers that events made ready: of any cluster, and perhaps pinned.
void processor::receive(fiber* list) noexcept {
    if (trace != nullptr) [[unlikely]]
        trace_each(*trace, trace_event::io, list);
    while (list != nullptr) {
        fiber* f = list;
        list = f->link.get();
        ready::at(*this, *f, place::back);
    }
}

void processor::take_in(fiber* list) noexcept {
    while (list != nullptr) {
        fiber* f = list;
        list = f->link.get();
        // Not may_run(): what was scattered to here stays.
        if (belongs_here(*f))
            make_ready(*f, place::back);
        else
            ready::at_home(*f);
    }
}

void processor::take_in_front(fiber* list) noexcept {
    if (has_policy() || scatters_) return take_in(list);
    fiber* reversed = nullptr;
    while (list != nullptr) {
        fiber* next = list->link.get();
        list->link.set(reversed);
        reversed = list;
        list = next;
    }
    while (reversed != nullptr) {
        fiber* f = reversed;
        reversed = f->link.get();
        if (may_run(*f))
            ready.push_front(*f);
        else
            ready::at_home(*f);
    }
}

void processor::help_wanted(bool at_once) noexcept {
    const os::no_stop claimed_and_not_yet_woken;
    if (home_.idle.look().searching != 0) return;
    const bool is_watched = home_.needs_watcher();
    if (has_policy() || (looks_busy() && (at_once || is_watched || has_waited_here())))
        wake_one();
    else if (is_watched)
        search::ask_watcher(home_);
    else
        detection::keeps_waiting(this_carrier()->take_look());
}

// For its holder, inside or just after leave(). Where another carrier has it by then, true: a
// wake-up too many does no harm.
bool processor::has_waited_here() noexcept {
    carrier_core* const c = this_carrier_core();
    if (c->ownership.is_inside()) return has_waited();
    const here at{c};
    processor* const p = at.enter();
    if (p == nullptr) return true;  // Another carrier has it now.
    const bool it_has = p != this || has_waited();
    at.leave();
    return it_has;
}

void processor::wake_one() noexcept {
    processor* const helper = home_.idle.claim_any(false);
    if (helper == nullptr) return;
    UMS_ASSERT(&helper->home_ == &home_, "a processor of another cluster is woken");
    counters.wakes_sent.add(1);
    helper->notify();
}

bool processor::is_wanted() const noexcept {
    return looks_wanted() || driver::has_events() || next_deadline() <= os::now();
}

bool processor::looks_wanted() const noexcept {
    return looks_stranded() || ready.has_pinned() || !pinned.looks_empty() ||
           !home_.shared_inbox.looks_empty() || home_.carriers.has_stopped() || has_policy();
}

}  // namespace ums::sched
