// SPDX-License-Identifier: MIT
#include "sched/processor.hpp"

#include <algorithm>
#include <sched.h>

#include "os/membarrier.hpp"
#include "os/no_stop.hpp"
#include "sched/access.hpp"
#include "sched/bias.hpp"
#include "sched/cluster.hpp"
#include "sched/depot.hpp"
#include "sched/search.hpp"
#include "sched/spread.hpp"

namespace ums::sched {

namespace {

// Ids are handed to processors in blocks, so that a spawn needs no shared counter.
constexpr std::uint64_t id_block = 4096;
base::atomic<std::uint64_t> next_id_block{1};

// How many deadlines are fired at once, at most.
constexpr unsigned timer_batch = 32;

// How long a slice may take while timers are pending on the processor.
constexpr os::nanoseconds timer_slice = 50'000;

}  // namespace

processor::processor(cluster& home, unsigned index, std::uint64_t seed) noexcept
    : ticks_left_{1},
      home_{home},
      index_{index},
      cached_class_{depot().default_class()},
      random_{seed} {
    asymmetric_ = os::asymmetric();
    race_.create_processor();
    bias::add(*this);
}

processor::~processor() {
    bias::remove(*this);
    race_.destroy_processor();
}

void processor::push_back(fiber& f) noexcept {
    if (f.pinned_to.get() == nullptr) {
        queue_.push_back(f);
    } else {
        pinned_queue_.push_back(f);
        ticks_left_.set(1);
    }
}

void processor::push_front(fiber& f) noexcept {
    if (f.pinned_to.get() == nullptr)
        queue_.push_front(f);
    else
        push_back(f);
}

void processor::make_ready(fiber& f, bool run_it_next) noexcept {
    if (home_.policy_ != nullptr && f.pinned_to.get() == nullptr)
        home_.policy_->ready(access::ref(&f), index_);
    else if (run_it_next)
        push_next(f);
    else
        push_back(f);
}

void processor::note_cpu() noexcept {
    if (home_.active() <= 1) return;
    const int here = sched_getcpu();
    if (here != cpu_.get() || counters.slices.get() % spread::period == 0) [[unlikely]]
        spread::arrived(*this, here);
}

fiber* processor::pick_at_slice_end() noexcept {
    start_slice();
    note_cpu();
    visit_timers();
    visit_driver();
    visit_inboxes();
    // relaxed: only has to be seen in the end. Null: the caller goes to the loop, which retires.
    if (retiring_.load(base::relaxed)) return nullptr;
    fiber* f = pick_after_visits();
    offer_rest();
    return f;
}

fiber* processor::pick_after_visits() noexcept {
    // The slice is over for those who keep waking each other, too.
    if (fiber* next = run_next_.get(); next != nullptr && !every_switch_slow_) {
        run_next_.set(nullptr);
        push_back(*next);
    }
    pinned_turn_ = !pinned_turn_;
    if (pinned_turn_)
        if (fiber* f = pinned_queue_.pop_front()) return f;
    if (fiber* f = pick_stopped()) return f;
    return pick_counted();
}

// Returned, not queued: in no queue could it be found by who needs it to go on (sched/carrier_pool.hpp). While there are
// more, each second switch is theirs.
fiber* processor::pick_stopped() noexcept {
    carrier_pool& pool = home_.carriers;
    if (!pool.has_stopped()) return nullptr;
    carrier* c = pool.take_stopped();
    if (c == nullptr) return nullptr;
    if (pool.has_stopped()) {
        ticks_left_.set(std::min(ticks_left_.get(), 2u));
        wake_one();
    }
    return c->running.get();
}

fiber* processor::pick_elsewhere() noexcept {
    const bool has_batch = visit_inboxes();
    fiber* f = pick_stopped();
    if (f == nullptr) f = queue_.pop_front();
    if (f == nullptr && home_.policy_ != nullptr) f = access::fiber_of(home_.policy_->next(index_));
    if (f == nullptr) f = pinned_queue_.pop_front();
    if (has_batch) offer_rest();
    return f;
}

bool processor::visit_inboxes() noexcept {
    queue_all(pinned_.take_all());
    queue_all(inbox_.take_all());
    if (home_.shared_inbox.looks_empty()) return false;
    queue_all(home_.shared_inbox.take_all());
    return true;
}

// Who filled the inbox, or whose deadline or event it was, has woken one processor at most, and that may have looked
// while all of it was on its way from there to here.
void processor::offer_rest() noexcept {
    if (looks_busy() || (home_.policy_ != nullptr && !home_.policy_->empty(index_))) wake_help();
}

// A retired processor's sleepers are looked after by the first.
os::nanoseconds processor::next_deadline() const noexcept {
    os::nanoseconds least = timers_.next();
    if (index_ == 0)
        for (unsigned i = home_.active(); i < home_.size(); ++i)
            least = std::min(least, home_.at(i).timers_.next());
    return least;
}

void processor::visit_timers() noexcept {
    const os::nanoseconds next = next_deadline();
    if (next == os::never) {
        slice_ = slice;
        slice_began_ = 0;
        return;
    }
    const os::nanoseconds now = os::now();
    // Keep deadlines although the switches are far apart: fewer of them to a slice. One that is far away itself need
    // not be looked after as closely.
    if (slice_began_ != 0) {
        const os::nanoseconds each = (now - slice_began_) / slice_ + 1;
        const os::nanoseconds most = std::max(timer_slice, (std::max(next, now) - now) / 4);
        slice_ = static_cast<std::uint32_t>(std::clamp<os::nanoseconds>(most / each, 1, slice));
    }
    slice_began_ = now;
    // Expired sleepers are late already: they go to the queue's front. But they get at most every other
    // switch, or a flood of them would starve the others: one for two switches since the last visit.
    timer_credit_ = std::min(timer_credit_ + slice_, slice);
    if (next > now) return;
    // The ones fired last still wait in front: those with later deadlines must not overtake them.
    const std::uint32_t waiting = sleepers_before_ - queue_.head();
    if (!queue_.looks_empty() && waiting - 1 < timer_batch) return;
    const unsigned most = queue_.looks_empty() ? timer_batch : timer_credit_ / 2;
    timer_credit_ -= std::min(timer_credit_, 2 * most);
    if (most == 0) return;
    sleepers_before_ = queue_.head();
    queue_in_front(timers_.fire(now, std::min(most, timer_batch)));
    if (index_ == 0)
        for (unsigned i = home_.active(); i < home_.size(); ++i)
            queue_all(home_.at(i).timers_.fire(now, timer_batch));
}

void processor::visit_driver() noexcept { receive(driver_->poll()); }

// Fibers that events made ready: of any cluster, and perhaps pinned.
void processor::receive(fiber* list) noexcept {
    while (list != nullptr) {
        fiber* f = list;
        list = f->link.get();
        if (may_run(*f))
            make_ready(*f, false);
        else
            f->home_cluster.get()->make_ready_from_outside(*f);
    }
}

// Owned fibers of this cluster. A fiber that may not run here is sent on.
void processor::queue_all(fiber* list) noexcept {
    while (list != nullptr) {
        fiber* f = list;
        list = f->link.get();
        const processor* only = f->pinned_to.get();
        if (f->home_cluster.get() == &home_ && (only == nullptr || only == this))
            make_ready(*f, false);
        else
            f->home_cluster.get()->make_ready_from_outside(*f);
    }
}

void processor::queue_in_front(fiber* list) noexcept {
    if (home_.policy_ != nullptr || scatter_) return queue_all(list);
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
            push_front(*f);
        else
            f->home_cluster.get()->make_ready_from_outside(*f);
    }
}

void processor::help_wanted() noexcept {
    const os::no_stop claimed_and_not_yet_woken;
    if (home_.idle.look().searching != 0) return;
    if (looks_busy() || home_.policy_ != nullptr)
        wake_one();
    else if (!home_.is_sampling.load(base::relaxed))
        search::alert_watcher(home_);
}

void processor::wake_one() noexcept {
    processor* idle = home_.idle.claim_any(false);
    if (idle == nullptr) return;
    counters.wakes_sent.add(1);
    idle->driver_->notify();
}

bool processor::is_wanted() const noexcept {
    return looks_wanted() || driver::has_events() || next_deadline() <= os::now();
}

bool processor::looks_wanted() const noexcept {
    return looks_stranded() || !pinned_queue_.looks_empty() || !pinned_.looks_empty() ||
           !home_.shared_inbox.looks_empty() || home_.carriers.has_stopped() ||
           home_.policy_ != nullptr;
}

void processor::adopt_stacks(mem::stack_head* list, std::uint32_t n) noexcept {
    while (list != nullptr) {
        mem::stack_head* next = list->next_free;
        list->next_free = free_stacks_;
        free_stacks_ = list;
        list = next;
    }
    free_stack_count_ += n;
}

void processor::spill_stacks(std::uint32_t keep) noexcept {
    // Keep the warmest: the first `keep`.
    mem::stack_head** at = &free_stacks_;
    for (std::uint32_t i = 0; i < keep && *at != nullptr; ++i) at = &(*at)->next_free;
    mem::stack_head* rest = *at;
    *at = nullptr;
    free_stack_count_ = std::min(free_stack_count_, keep);
    if (rest != nullptr) depot().give(rest);
}

std::uint64_t processor::outside_id() noexcept {
    // relaxed: only uniqueness matters.
    return next_id_block.fetch_add(1, base::relaxed);
}

void processor::refill_ids() noexcept {
    // relaxed: only uniqueness matters.
    next_id_ = next_id_block.fetch_add(id_block, base::relaxed);
    last_id_ = next_id_ + id_block;
}

}  // namespace ums::sched
