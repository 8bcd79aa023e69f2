// SPDX-License-Identifier: MIT
#pragma once

// sched/processor.hpp: the right to run fibers, with what is ready to run.
//
// At most one carrier holds a processor. The holder works on it between its enter() and leave()
// (sched/carrier.hpp, sched/ownership.hpp): "inside"; a switch happens inside. What runs next, in order: the run-next slot (the
// fiber made ready last by the one that runs now: its data is warm), the front of the run queue, the
// cluster's policy, the inboxes, and then (sched/search.hpp) other processors.
//
// Fairness. A counter of 61 switches bounds how long anything is overlooked: when it runs out the
// inboxes, the timers and the driver are visited and the fiber in the run-next slot goes to the back
// of the queue, so two fibers that wake each other share one slice of 61 switches.

#include <cstdint>
#include <memory>

#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/random.hpp"
#include "mem/stack_depot.hpp"
#include "sched/driver.hpp"
#include "sched/fiber.hpp"
#include "sched/inbox.hpp"
#include "sched/run_queue.hpp"
#include "sched/timer_queue.hpp"

namespace ums::sched {

struct carrier;
class cluster;

struct processor_counters {
    base::owned<std::uint64_t> slices;  // Times the switch counter ran out.
    base::owned<std::uint64_t> spawned;
    base::atomic<std::uint64_t> finished;
    base::owned<std::uint64_t> steals;      // Successful raids.
    base::owned<std::uint64_t> stolen;      // Fibers they brought.
    base::owned<std::uint64_t> idles;       // Waits in the driver.
    base::owned<std::uint64_t> wakes_sent;  // Idle processors this one woke.
    base::owned<std::uint64_t> timers_fired;
    base::owned<std::uint64_t> moves;  // To another CPU, off one that it shared.
};

class alignas(base::cache_line) processor {
public:
    static constexpr std::uint32_t slice = 61;

    processor(cluster& home, unsigned index, std::uint64_t seed) noexcept;
    ~processor();
    processor(const processor&) = delete;
    processor& operator=(const processor&) = delete;

    // What works inside it, for ThreadSanitizer.
    [[nodiscard]] const arch::race_context& race() const noexcept { return race_; }

    // Changes with each switch. For anybody; a hint.
    [[nodiscard]] std::uint64_t activity() const noexcept {
        return (std::uint64_t{index_} + 1) << 50 | (counters.slices.get() * 64 + ticks_left_.get());
    }

    // What a lock's word says that is biased to it (sched/bias.hpp). Changes when it retires.
    [[nodiscard]] std::uint32_t bias() const noexcept { return bias_.get(); }

    // The carrier that holds it, or null. For anybody; a hint.
    [[nodiscard]] carrier* holder() const noexcept {
        return holder_.load(base::acquire);  // sync(holder): sees the carrier.
    }

    // What its watcher (carrier_pool::watcher) knows it by.
    void* watch = nullptr;

    // Whether somebody else waits for it, or could. For its holder, from a signal handler.
    [[nodiscard]] bool is_wanted() const noexcept;
    // Whether fibers are ready that wait for it, or could. For anybody; a hint.
    [[nodiscard]] bool looks_wanted() const noexcept;

    // Lets the carrier that waits in its driver look again.
    void kick() noexcept { driver_->notify(); }

    // Counts a switch. Whether it may take the shortest path: nothing in the run-next slot and the
    // slice not over.
    [[nodiscard]] UMS_ALWAYS_INLINE bool count_plain_switch() noexcept {
        const std::uint32_t left = ticks_left_.get() - 1;
        ticks_left_.set(left);
        return left != 0 && run_next_.get() == nullptr;
    }
    // A yield's shortest path: the queue's front comes, `self` goes to its back. Null: take the slow one.
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* rotate(fiber& self) noexcept {
        return count_plain_switch() && !self.is_pinned.get() ? queue_.rotate(self) : nullptr;
    }
    // After rotate() gave null: what shall run instead of a fiber that yields, or null.
    [[nodiscard]] fiber* pick_for_yield() noexcept {
        return ticks_left_.get() == 0 ? pick_at_slice_end() : pick_counted();
    }

    // A fiber has ended, or left for another cluster, and nothing of it is in use here. Inside.
    UMS_ALWAYS_INLINE void count_end() noexcept;

    // What runs next here, or null. May visit the inboxes; never waits, never steals. Inside.
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* pick() noexcept {
        const std::uint32_t left = ticks_left_.get() - 1;
        ticks_left_.set(left);
        if (left == 0) [[unlikely]]
            return pick_at_slice_end();
        return pick_counted();
    }
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* pick_counted() noexcept {
        fiber* f = run_next_.get();
        if (f != nullptr) {
            run_next_.set(nullptr);
            return f;
        }
        f = queue_.pop_front();
        return f != nullptr ? f : pick_elsewhere();
    }

    // What runs next if that is at hand: no inbox, timer, driver or policy is asked. Else null, and nothing
    // is counted. Inside.
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* pick_at_hand() noexcept {
        const std::uint32_t left = ticks_left_.get();
        if (left <= 1) return nullptr;
        fiber* f = run_next_.get();
        if (f != nullptr)
            run_next_.set(nullptr);
        else if ((f = queue_.pop_front()) == nullptr)
            return nullptr;
        ticks_left_.set(left - 1);
        return f;
    }

    // Inside. `next`: run it before the others. Neither wakes anybody: see wake_help().
    UMS_ALWAYS_INLINE void push_next(fiber& f) noexcept {
        fiber* displaced = run_next_.get();
        run_next_.set(&f);
        if (displaced != nullptr) push_back(*displaced);
    }
    void push_back(fiber& f) noexcept;
    void push_front(fiber& f) noexcept;

    // Puts a fiber where the cluster's policy wants it. Inside, and only if it may run here.
    void make_ready(fiber& f, bool run_it_next) noexcept;

    // The short way of make_ready(f, true), for nearly all. False, and nothing is done: not this one.
    [[nodiscard]] UMS_ALWAYS_INLINE bool make_next(fiber& f) noexcept {
        if (every_switch_slow_ || f.is_pinned.get() || f.home_cluster.get() != &home_) [[unlikely]]
            return false;
        push_next(f);
        return true;
    }

    // After a push: wakes an idle processor if there is something for it, or lets one watch over the
    // run-next slot. Call it outside, or last inside.
    UMS_ALWAYS_INLINE void wake_help() noexcept;

    // Whether make_ready() may be told of this fiber: it belongs here.
    [[nodiscard]] bool may_run(const fiber& f) const noexcept {
        const processor* only = f.pinned_to.get();
        return f.home_cluster.get() == &home_ && (only == nullptr || only == this) && !scatter_;
    }

    // Whether a policy of the user's orders the fibers.
    [[nodiscard]] bool has_policy() const noexcept;

    // Hints, for anybody.
    [[nodiscard]] bool looks_busy() const noexcept { return !queue_.looks_empty(); }
    // Including what others take only from a processor that is stuck: the run-next slot and the inbox.
    [[nodiscard]] bool looks_stranded() const noexcept {
        return looks_busy() || run_next_.get() != nullptr || !inbox_.looks_empty();
    }
    [[nodiscard]] std::uint32_t ticks_left() const noexcept { return ticks_left_.get(); }

    [[nodiscard]] timer_queue& timers() noexcept { return timers_; }
    [[nodiscard]] bool is_retiring() const noexcept {
        return retiring_.load(base::relaxed);  // relaxed: only has to be seen in the end.
    }
    [[nodiscard]] cluster& home() const noexcept { return home_; }
    [[nodiscard]] unsigned index() const noexcept { return index_; }

    // --- spawn and join: a private cache of stacks and ids. Inside. ---
    [[nodiscard]] UMS_ALWAYS_INLINE mem::stack_head* take_stack() noexcept {
        mem::stack_head* head = free_stacks_;
        if (head != nullptr) {
            free_stacks_ = head->next_free;
            --free_stack_count_;
            arch::happens_before(head);  // Who put it there is in the processor's past.
        }
        return head;
    }
    // The caller must then refill() or spill() outside the fast path when told so.
    UMS_ALWAYS_INLINE void put_stack(mem::stack_head& head) noexcept {
        head.next_free = free_stacks_;
        free_stacks_ = &head;
        if (++free_stack_count_ > stack_cache_most) [[unlikely]]
            spill_stacks(stack_cache_most / 2);
    }
    // Whether a stack is of the size that this cache holds.
    [[nodiscard]] UMS_ALWAYS_INLINE bool caches(const mem::stack_head& head) const noexcept {
        return head.home->size_class == cached_class_;
    }
    void adopt_stacks(mem::stack_head* list, std::uint32_t n) noexcept;
    void spill_stacks(std::uint32_t keep) noexcept;
    [[nodiscard]] UMS_ALWAYS_INLINE std::uint64_t take_id() noexcept {
        if (next_id_ == last_id_) [[unlikely]]
            refill_ids();
        return next_id_++;
    }

    // For those who hold no processor.
    [[nodiscard]] static std::uint64_t outside_id() noexcept;

    // Whether a fiber may be switched to past the queues: not when a policy of the user's decides, or the
    // slice is over. Counts the switch.
    [[nodiscard]] bool may_continue_directly() noexcept {
        const std::uint32_t left = ticks_left_.get();
        if (left <= 1 || every_switch_slow_) return false;
        ticks_left_.set(left - 1);
        return true;
    }

    // Counts a switch that no pick() counts; a slice that ends by it ends with the next one.
    void count_switch() noexcept {
        if (ticks_left_.get() > 1) ticks_left_.set(ticks_left_.get() - 1);
    }

    // Who created a dispatched fiber: to the front, as if it had called it; once in 61 slices to the
    // back, so that a fiber that does nothing but dispatch cannot starve the others. (Every slice would
    // turn the depth-first walk of a tree into a breadth-first one.)
    void push_creator(fiber& f) noexcept {
        const std::uint64_t now = counters.slices.get();
        if (now - creators_turn_ < slice) return push_front(f);
        creators_turn_ = now;
        push_back(f);
    }

    static constexpr std::uint32_t stack_cache_most = 256;
    static constexpr std::uint32_t stack_batch = 64;

    processor_counters counters;

private:
    friend class cluster;
    friend class idle_set;
    friend struct search;
    friend struct spread;
    friend struct carrier;
    friend class carrier_pool;
    friend struct hand_off;
    friend struct bias;

    [[gnu::noinline]] fiber* pick_at_slice_end() noexcept;
    [[gnu::noinline]] fiber* pick_elsewhere() noexcept;
    [[nodiscard]] fiber* pick_after_visits() noexcept;
    [[nodiscard]] fiber* pick_stopped() noexcept;
    [[gnu::noinline]] void help_wanted() noexcept;
    void wake_one() noexcept;
    // The visits bring fibers here and wake nobody: offer_rest() follows, once it is known what runs next.
    bool visit_inboxes() noexcept;  // Whether the shared one brought something.
    void visit_timers() noexcept;
    void visit_driver() noexcept;
    void offer_rest() noexcept;
    void note_cpu() noexcept;
    void receive(fiber* list) noexcept;
    [[nodiscard]] os::nanoseconds next_deadline() const noexcept;
    void queue_all(fiber* list) noexcept;
    void queue_in_front(fiber* list) noexcept;
    void refill_ids() noexcept;
    void start_slice() noexcept {
        counters.slices.add(1);
        ticks_left_.set(every_switch_slow_ || !pinned_queue_.looks_empty() ? 1 : slice_);
    }

    // Touched by the holder between enter() and leave(), and by a thief with a claim on the holder:
    base::owned<std::uint32_t> ticks_left_;
    base::owned<fiber*> run_next_;
    base::owned<std::uint32_t> bias_;  // Written under the lock of sched/bias.cpp.
    run_queue queue_;                  // Fibers that any processor of the cluster may run.
    run_queue pinned_queue_;  // Fibers that only this one may; while there are, it alternates.
    bool pinned_turn_ = false;
    std::uint32_t slice_ = slice;  // Shorter while timers are pending and switches are far apart.
    os::nanoseconds slice_began_ = 0;
    std::uint32_t timer_credit_ = 0;     // Switches since the last visit that no sleeper has used.
    std::uint32_t sleepers_before_ = 0;  // Where the queue's front was before the last ones came.
    base::owned<int> cpu_{-1};  // Where it last ran, -1 if it is idle. Others read it as a hint.
    std::uint64_t creators_turn_ = 0;  // The slice in which a creator last went to the back.
    mem::stack_head* free_stacks_ = nullptr;
    std::uint32_t free_stack_count_ = 0;
    std::uint64_t next_id_ = 0, last_id_ = 0;

    // Set once, then read-only:
    cluster& home_;
    const unsigned index_;
    const std::uint32_t cached_class_;
    bool scatter_ = false;            // Debug: every ready fiber goes to another processor.
    bool every_switch_slow_ = false;  // A policy of the user's, or scatter_: no short path.
    bool asymmetric_ = true;
    arch::race_context race_;

    // Who holds it. Changed by who is inside, or has a claim on the carrier it names; null: retired.
    base::atomic<carrier*> holder_;
    carrier* last_holder_ = nullptr;  // Who retired it. Set before its remover is woken.

    // Written by anybody:
    inbox inbox_;   // Debug: fibers scattered to this processor, which others may run in need.
    inbox pinned_;  // Fibers that must run here.
    timer_queue timers_;
    base::atomic<bool> retiring_;  // Leave: remove_processor() or the end of the runtime.
    base::atomic<bool> retired_;   // Has no carrier. Written by the cluster's `change`.
    // Set before retiring_, read after it: woken when the carrier has left.
    parkable* remover_ = nullptr;

    // Guarded by the idle set's lock:
    processor* next_idle_ = nullptr;
    base::owned<bool> is_idle_;  // Others read it as a hint.

    // Guarded by the lock of sched/bias.cpp:
    processor* next_biased_ = nullptr;

    // Owned by the cluster's watcher:
    std::uint64_t watched_ = 0;

    // Set once, before others see the processor: to each processor of a lower index.
    std::unique_ptr<unsigned char[]> distance_;

    // Owned by the carrier that holds the processor:
    driver waiting_;
    driver* driver_ = &waiting_;
    fiber* arrived_ = nullptr;  // What the driver's last wait brought.
    base::random random_;
};

}  // namespace ums::sched
