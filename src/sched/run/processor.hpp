// SPDX-License-Identifier: MIT
#pragma once

// sched/run/processor.hpp: the right to run fibers, with what is ready to run.
//
// At most one carrier holds a processor. The holder works on it between its enter() and leave()
// (sched/run/carrier.hpp, carry/ownership.hpp): "inside"; a switch happens inside. The next fiber
// comes from, in this order: the run queue (sched/queue/run_queue.hpp), the inboxes, the cluster's
// policy, and then (sched/run/search.hpp) other processors.
//
// Fairness: a round of 61 switches bounds how long anything is overlooked. When it is over, the
// processor visits the inboxes, the timers and the driver.
//
// Its parts are public and look after themselves. Each says under what it may be touched.

#include <cstdint>
#include <memory>

#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/look_inside.hpp"
#include "base/random.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/fiber/fiber_ids.hpp"
#include "sched/queue/driver.hpp"
#include "sched/queue/inbox.hpp"
#include "sched/queue/run_queue.hpp"
#include "sched/queue/stack_cache.hpp"
#include "sched/queue/timer_pace.hpp"
#include "sched/queue/timer_queue.hpp"
#include "sched/record/trace.hpp"

namespace ums::sched {

struct carrier;
class cluster;
class processor_watch;

struct processor_counters {
    base::owned<std::uint64_t> spawned;
    base::atomic<std::uint64_t> finished;
    base::owned<std::uint64_t> steals;      // Successful raids.
    base::owned<std::uint64_t> stolen;      // Fibers they brought.
    base::owned<std::uint64_t> idles;       // Waits in the driver.
    base::owned<std::uint64_t> wakes_sent;  // Idle processors this one woke.
    base::owned<std::uint64_t> timers_fired;
    base::owned<std::uint64_t> moves;  // Moves to another CPU, off one that it shared.
};

class alignas(base::cache_line) processor {
public:
    processor(cluster& home, unsigned index, std::uint64_t seed) noexcept;
    ~processor();
    processor(const processor&) = delete;
    processor& operator=(const processor&) = delete;

    [[nodiscard]] cluster& home() const noexcept { return home_; }
    [[nodiscard]] unsigned index() const noexcept { return index_; }
    // The context of the code that works inside it, for ThreadSanitizer.
    [[nodiscard]] const arch::race_context& race() const noexcept { return race_; }

    // Changes with each switch. Any thread may read it, as a hint.
    [[nodiscard]] std::uint64_t activity() const noexcept {
        return (std::uint64_t{index_} + 1) << 50 | ready.switches();
    }

    // The carrier that holds it, or null. Any thread may read it, as a hint.
    [[nodiscard]] carrier* holder() const noexcept {
        return holder_.load(base::acquire);  // sync(holder): sees the carrier.
    }
    // The same word, for a caller with a claim on that carrier: it cannot change then.
    [[nodiscard]] bool is_held_by(const carrier& c) const noexcept {
        return holder_.load(base::relaxed) == &c;  // relaxed: the claim orders it.
    }
    // The caller must be inside, hold a claim on the holder, or make the first one. Null if no
    // carrier will hold it any more.
    void set_holder(carrier* c) noexcept {
        holder_.store(c, base::release);  // sync(holder): publishes the carrier to thieves.
    }

    // --- What runs next. Call these inside. ---
    // Returns what runs next here, or null. May visit the inboxes; never waits, never steals.
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* pick() noexcept {
        if (ready.count_switch()) [[unlikely]]
            return pick_at_round_end();
        return pick_counted();
    }
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* pick_counted() noexcept {
        fiber* const f = ready.pop();
        return f != nullptr ? f : pick_elsewhere();
    }
    // Call after run_queue::rotate() returned null: returns what is to run instead of a fiber that
    // yields, or null.
    [[nodiscard]] fiber* pick_for_yield(fiber& self) noexcept {
        return ready.is_round_over() ? pick_at_round_end(&self) : pick_counted();
    }
    // Begins a new round, and visits everything before that. Returns null also if the processor is
    // to retire or rest. `yielder`: the fiber that yields; null if none does.
    [[gnu::noinline]] fiber* pick_at_round_end(fiber* yielder = nullptr) noexcept;
    // Whether the processor may switch to a fiber past the queues: not if a policy of the
    // application's decides, or if the round is over. Counts the switch.
    [[nodiscard]] UMS_ALWAYS_INLINE bool may_continue_directly() noexcept {
        return !ready.always_looks() && ready.count_within_round();
    }

    // --- What is ready. Call these inside. ---
    // Whether make_ready() may be told of this fiber: it belongs here.
    [[nodiscard]] UMS_ALWAYS_INLINE bool may_run(const fiber& f) const noexcept {
        return belongs_here(f) && !scatters_;
    }
    // Where a fiber goes among those of this processor if no policy of the application's decides.
    enum class place : unsigned char { back, next, next_new };
    // Puts a fiber that may run here (sched/run/ready.hpp) where the cluster's policy wants it.
    // Wakes no processor: see wake_help().
    void make_ready(fiber& f, place where) noexcept;
    // The short way of make_ready(f, place::next), for nearly all fibers. Returns false, without
    // doing anything, for the others.
    [[nodiscard]] UMS_ALWAYS_INLINE bool make_next(fiber& f) noexcept {
        if (!is_usual(f)) [[unlikely]]
            return false;
        ready.push_next(f);
        return true;
    }
    // The same of make_ready(f, place::next_new).
    [[nodiscard]] UMS_ALWAYS_INLINE bool make_next_new(fiber& f) noexcept {
        if (!is_usual(f)) [[unlikely]]
            return false;
        ready.push_new(f);
        return true;
    }
    // Takes fibers of this cluster that the caller owns, linked. A fiber that may not run here is
    // sent on.
    void take_in(fiber* list) noexcept;

    // Begins a round and takes in what is due: deadlines, what the last wait brought, events. Wakes
    // no processor: offer_rest() follows, once it is known what runs next.
    // `runs_out`: it has nothing to run.
    void look_around(bool runs_out = false) noexcept;
    // Lets it do so at the next switch.
    void look_soon() noexcept {
        cut_ = 0;
        ready.end_soon();
    }
    // Call after look_around(), or after many fibers became ready at the same time. The thread that
    // filled the inbox, or the deadline or the event, has woken one processor at most, and that one
    // may have looked while all of the fibers were on their way to here.
    void offer_rest() noexcept;
    // After note_runs(), at the same place: see search::set_runs_long().
    void tell_of_long_runs() noexcept;
    // Returns the fibers whose deadline has come, of this processor's timers or of another one's.
    [[nodiscard]] fiber* fire(timer_queue& of, os::nanoseconds now, unsigned most) noexcept;
    // Call after a push: wakes an idle processor if there is something for it, or lets one watch
    // over the run-next slot. Call it outside, or last inside. `at_once`: what waits in the ring is
    // new work of its own, so a burst spreads before anything has waited.
    UMS_ALWAYS_INLINE void wake_help(bool at_once = false) noexcept;
    void wake_one() noexcept;

    // A fiber has ended, or left for another cluster, and nothing of it is in use here. Call it
    // inside.
    UMS_ALWAYS_INLINE void count_end() noexcept;
    // The same while another fiber of the cluster is there for certain: a drain() waits for that
    // one, too, so nobody need look whether there is one.
    UMS_ALWAYS_INLINE void count_end_of_joined() noexcept {
        // sync(drain): the fiber's end happens before a drain() that counts it. One writer.
        counters.finished.store(counters.finished.load(base::relaxed) + 1, base::release);
    }

    // Waits for something to run, at most until `limit`; if `takes_events`, in the engine. Call it
    // outside.
    void wait(os::nanoseconds limit, bool takes_events) noexcept {
        last_cpu.set(-1);
        round_began_ = 0;
        arrived_ = waiting.wait(limit, takes_events);
    }
    [[nodiscard]] bool has_arrived() const noexcept { return arrived_ != nullptr; }
    // Makes the carrier that waits in its driver look again. Any thread may call it.
    void notify() noexcept { waiting.notify(); }

    // Makes the carrier look again that looks after this processor's deadlines: its own, or the
    // first processor's if this one was removed. Call it after the deadline was added.
    void notify_of_deadline() noexcept;

    // The next deadline that this processor looks after. A hint.
    [[nodiscard]] os::nanoseconds next_deadline() const noexcept;

    // --- Hints, for any thread ---
    // Whether a policy of the application's orders the fibers.
    [[nodiscard]] bool has_policy() const noexcept;
    // Whether fibers wait that other processors may take.
    [[nodiscard]] bool looks_busy() const noexcept { return ready.looks_busy(); }
    // The same, plus what others take only from a processor that is stuck: the run-next slot and
    // the inbox.
    [[nodiscard]] bool looks_stranded() const noexcept {
        return ready.looks_busy() || ready.has_run_next() || !scattered.looks_empty();
    }
    // Whether ready fibers wait for it, or could.
    [[nodiscard]] bool looks_wanted() const noexcept;
    // The same, or whether a deadline or an event is due. For its holder, from a signal handler.
    [[nodiscard]] bool is_wanted() const noexcept;

    // --- Parts ---
    // Null if no tool traces. It lies in the cache line that each switch reads. Use it inside, or
    // with a claim on the holder.
    trace_ring* trace = nullptr;
    run_queue ready;     // Use it inside, or with a claim on the holder.
    stack_cache stacks;  // Use it inside.
    fiber_ids ids;       // Use it inside.
    timer_queue timers;  // Any thread may use it: it has a lock.
    inbox pinned;        // Any thread may push: fibers that must run here.
    // For debugging: fibers sent here from other processors, which others may run if needed.
    inbox scattered;
    driver waiting;  // The processor's carrier waits in it.
    processor_counters counters;

    // What the word of a lock says that is biased to this processor (sched/lock/bias.hpp). Changes
    // when the processor retires.
    base::owned<std::uint32_t> bias_number;  // Written under the lock of sched/lock/bias.cpp.
    processor* next_biased = nullptr;        // Guarded by the same lock.

    // Its place in the cluster's idle set (sched/run/idle_set.hpp). Guarded by the set's lock.
    base::owned<bool> is_idle;  // Others read it as a hint.
    processor* next_idle = nullptr;

    // The way out: remove_processor(), or the end of the runtime.
    struct {
        base::atomic<bool> is_asked;
        base::atomic<bool> is_done;  // No carrier holds it. Written by the cluster's `change`.
        // Set before is_asked, and read after it: woken when the carrier has left.
        parkable* remover = nullptr;
        carrier* last_holder = nullptr;  // Set before the remover is woken.
    } retirement;
    [[nodiscard]] bool is_retiring() const noexcept {
        // relaxed: it only has to be seen in the end.
        return retirement.is_asked.load(base::relaxed);
    }

    // Whether its carrier waits in pausing::rest(), between two fibers. Written by that carrier.
    base::atomic<bool> is_resting;

    // The CPU where it last ran, -1 if it is idle. Other threads read it as a hint.
    base::owned<int> last_cpu{-1};
    // What the detector looks at (sched/block/detection.cpp); null: it does not. Owned by the
    // thread that changes the cluster.
    processor_watch* watch = nullptr;
    // Its fibers have run for long lately, or the one that runs does: the cluster needs a watcher.
    // Written by search::set_runs_long().
    base::atomic<bool> runs_long;
    // Its activity as the cluster's watcher last saw it. Owned by the watcher.
    std::uint64_t watched = 0;
    base::random random;  // Owned by its carrier.
    // The distance to each processor of a lower index, as os::cpu_distance() has it. Set before
    // other threads see the processor. Null if not pinned.
    std::unique_ptr<unsigned char[]> distance;

    // For debugging: every ready fiber goes to another processor. Call it once, before anything
    // runs.
    void scatter() noexcept {
        scatters_ = true;
        ready.always_look();
    }

private:
    friend struct ums::look_inside;

    [[gnu::noinline]] fiber* pick_elsewhere() noexcept {
        return pick_elsewhere_instead_of(nullptr);
    }
    [[nodiscard]] fiber* pick_elsewhere_instead_of(fiber* yielder) noexcept;
    [[nodiscard]] fiber* ask_policy(fiber* yielder) noexcept;
    [[nodiscard]] fiber* pick_after_visits(fiber* yielder) noexcept;
    [[nodiscard]] fiber* pick_stopped() noexcept;
    [[gnu::noinline]] void help_wanted(bool at_once) noexcept;
    bool visit_inboxes() noexcept;  // Returns whether the shared inbox brought something.
    void visit_timers() noexcept;
    void note_cpu() noexcept;
    void look_for_events(bool runs_out) noexcept;
    std::uint32_t note_runs() noexcept;
    [[nodiscard]] bool has_waited() noexcept;
    [[nodiscard]] bool has_waited_here() noexcept;
    void receive(fiber* list) noexcept;
    [[nodiscard]] UMS_ALWAYS_INLINE bool belongs_here(const fiber& f) const noexcept {
        const processor* only = f.pinned_to.get();
        return f.home_cluster.get() == &home_ && (only == nullptr || only == this);
    }
    void take_in_front(fiber* list) noexcept;
    // A fiber of this cluster, which has no policy of the application's.
    [[nodiscard]] UMS_ALWAYS_INLINE bool is_usual(const fiber& f) const noexcept {
        return !ready.always_looks() && !f.is_pinned.get() && f.home_cluster.get() == &home_;
    }

    // Set once, then read-only:
    cluster& home_;
    const unsigned index_;
    bool scatters_ = false;
    bool asymmetric_ = true;
    arch::race_context race_;

    base::atomic<carrier*> holder_;

    // Owned by its carrier:
    timer_pace pace_;
    fiber* arrived_ = nullptr;  // What the last wait brought.
    // note_runs(): when the round began, the switches until then, and how often runs were long.
    os::nanoseconds round_began_ = 0;
    std::uint64_t switches_before_ = 0;
    unsigned long_runs_ = 0;
    bool begins_long_ = false;  // And the watcher is not asked yet.
    // has_waited(): the place behind those that wait since `marked_at_` (0: none do), and what is
    // left of the round that was cut.
    std::uint32_t mark_ = 0;
    os::nanoseconds marked_at_ = 0;
    std::uint32_t cut_ = 0;
    // look_for_events(): how many looks in a row, when it ran out, were in vain or left out.
    unsigned looks_in_vain_ = 0;
};

}  // namespace ums::sched
