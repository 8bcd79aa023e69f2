// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/run_queue.hpp: the ready fibers of one processor, and how long those that run may
// continue.
//
// The next fiber comes from, in this order: the run-next slot (the fiber that the running one made
// ready last: its data is warm), then the ring's front. Fibers that only this processor may run
// have a ring of their own; while it holds any, each second round begins with one of them.
//
// A round is 61 switches. When it is over, the processor looks at everything else
// (sched/run/processor.hpp), and the fiber in the run-next slot goes to the ring's back: two fibers
// that wake each other share one round. Beside a walk through a tree of fibers, those that wait
// behind it (sched/queue/fiber_ring.hpp) have one switch in sixteen, in their order.
//
// Two calls begin a walk: launch::dispatch, whose creator goes in front, and a wait for fibers that
// the waiting one has just made, which go in front themselves. A walk makes the memory that its
// tree is deep. A new fiber that waits in it for long leaves it, so a walk without end starves
// nobody that it began for good: after 61 times 61 switches the oldest that is new leaves, after
// twice as many the next, because each that leaves begins a walk of its own, with as many stacks. A
// creator does not leave: it has called.
//
// All of it is used under carry/ownership.hpp, except what is called a hint: any thread may read
// that.

#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/look_inside.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/queue/fiber_ring.hpp"

namespace ums::sched {

class run_queue {
public:
    static constexpr std::uint32_t round = 61;

    // --- The round ---
    // Counts a switch. Returns whether the round is over with it.
    [[nodiscard]] UMS_ALWAYS_INLINE bool count_switch() noexcept {
        const std::uint32_t left = ticks_left_.get() - 1;
        ticks_left_.set(left);
        return left == 0;
    }
    [[nodiscard]] bool is_round_over() const noexcept { return ticks_left_.get() == 0; }
    // Counts a switch unless the round would be over with it. Returns whether it was counted.
    UMS_ALWAYS_INLINE bool count_within_round() noexcept {
        const std::uint32_t left = ticks_left_.get();
        if (left <= 1) return false;
        ticks_left_.set(left - 1);
        return true;
    }
    // The round ends with the next switch, or after `switches` of them.
    void end_soon(std::uint32_t switches = 1) noexcept {
        const std::uint32_t left = ticks_left_.get();
        if (left <= switches) return;
        length_.set(length_.get() - (left - switches));  // What is cut off does not count.
        ticks_left_.set(switches);
    }
    // The round ends with the next switch. Returns how many it would have had after that.
    [[nodiscard]] std::uint32_t cut() noexcept {
        const std::uint32_t left = ticks_left_.get();
        if (left <= 1) return 0;
        end_soon();
        return left - 1;
    }
    // `length` is in switches: the processor wants to look around at the latest after that many.
    void start_round(std::uint32_t length) noexcept {
        UMS_ASSERT(length >= 1 && length <= round, "a round of no switch, or of too many");
        rounds_.add(1);
        static_cast<void>(ring_.has_front_part());  // Now and then: see there.
        in_past_slices_.add(length_.get() - ticks_left_.get());
        length_.set(always_looks_ || !pinned_.looks_empty() ? 1 : length);
        ticks_left_.set(length_.get());
    }
    // How many rounds have begun. A hint.
    [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_.get(); }
    // The switches of all rounds but the present one: never decreases. A hint.
    [[nodiscard]] std::uint64_t past_switches() const noexcept { return in_past_slices_.get(); }
    // Those of all rounds.
    [[nodiscard]] std::uint64_t all_switches() const noexcept {
        return in_past_slices_.get() + length_.get() - ticks_left_.get();
    }
    // A number that changes with each switch. A hint.
    [[nodiscard]] std::uint64_t switches() const noexcept {
        return rounds_.get() * 64 + ticks_left_.get();
    }
    // Makes each round one switch long, because a policy of the application's decides what runs
    // next. Call it once, before anything runs.
    void always_look() noexcept { always_looks_ = true; }
    [[nodiscard]] bool always_looks() const noexcept { return always_looks_; }

    // --- What runs next ---
    // The shortest path of a yield: the front comes, and `self` goes to the back. If it returns
    // null, the switch is counted and nothing else is done.
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* rotate(fiber& self) noexcept {
        if (count_switch()) [[unlikely]]
            return nullptr;
        if (run_next_.get() != nullptr) [[unlikely]]
            return nullptr;
        if (self.is_pinned.get()) [[unlikely]]
            return nullptr;
        return ring_.rotate(self);
    }
    // Returns the fiber in the run-next slot, or the front; null if there is none.
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* pop() noexcept {
        if (fiber* f = run_next_.get()) {
            run_next_.set(nullptr);
            return f;
        }
        return ring_.pop_front();
    }
    // The same within the round, which counts it. If there is none, or the round would be over,
    // returns null and counts nothing.
    [[nodiscard]] UMS_ALWAYS_INLINE fiber* pop_within_round() noexcept {
        const std::uint32_t left = ticks_left_.get();
        if (left <= 1) return nullptr;
        fiber* const f = pop();
        if (f != nullptr) ticks_left_.set(left - 1);
        return f;
    }
    // The last of the queue. Requires: rotate() has just put it there.
    [[nodiscard]] fiber* back() const noexcept { return ring_.back(); }
    // A pinned one. At a round's end only each second time, so that the others have theirs.
    [[nodiscard]] fiber* pop_pinned() noexcept { return pinned_.pop_front(); }
    [[nodiscard]] fiber* pop_pinned_in_turn() noexcept {
        is_pinned_turn_ = !is_pinned_turn_;
        return is_pinned_turn_ ? pop_pinned() : nullptr;
    }

    // --- What is ready ---
    UMS_ALWAYS_INLINE void push_next(fiber& f) noexcept {
        fiber* const displaced = run_next_.get();
        run_next_.set(&f);
        if (displaced != nullptr) push_back(*displaced);
    }
    // The fiber in the run-next slot, if there is one, goes to the back; one that is a part of a
    // walk, to the front, or the walk would go on breadth first.
    void end_run_next() noexcept {
        fiber* const next = run_next_.get();
        if (next == nullptr) return;
        run_next_.set(nullptr);
        if (has_walk() && walks(*next))
            push_caller(*next);
        else
            push_back(*next);
    }
    void push_back(fiber& f) noexcept;
    void push_front(fiber& f) noexcept;
    // The running fiber has called another, and goes on when that stops.
    UMS_ALWAYS_INLINE void push_caller(fiber& f) noexcept {
        if (f.is_pinned.get()) [[unlikely]]
            return push_back(f);
        ring_.push_in_front(f);
    }
    // A new fiber, made by the one that runs. As push_next().
    UMS_ALWAYS_INLINE void push_new(fiber& f) noexcept {
        const std::uint64_t now = all_switches();
        news_.set(now == news_at_ ? news_.get() + 1 : 0);
        news_at_ = now;
        push_next(f);
    }
    // The running fiber is about to wait for those that it has made since it was switched to. They
    // come next, the newest first.
    UMS_ALWAYS_INLINE void call_new() noexcept {
        if (own_new() != 0) call_some_new();
    }
    // Whether call_new() may have something to do. A hint.
    [[nodiscard]] bool has_new() const noexcept { return news_.get() != 0; }
    // Whether there is a walk through a tree of fibers.
    [[nodiscard]] bool has_walk() noexcept { return ring_.has_front_part(); }
    // At the end of a round: one of those behind the front part may have a turn.
    void give_turn() noexcept {
        if (ring_.has_front_part()) [[unlikely]]
            return give_turn_before_walk();
        walks_ = 0;
    }

    // Moves the oldest in the victim's ring here: see fiber_ring::take_oldest(). If that is
    // nothing, and `slot_too`, moves the fiber in its run-next slot. Returns how many. Requires the
    // victim's protection, too.
    std::uint32_t steal(run_queue& victim, std::uint32_t most, bool slot_too) noexcept;

    // The front's place, and that behind the back: see fiber_ring::head().
    [[nodiscard]] std::uint32_t head() const noexcept { return ring_.head(); }
    [[nodiscard]] std::uint32_t end() const noexcept { return ring_.head() + ring_.size(); }

    // --- Hints ---
    [[nodiscard]] bool looks_busy() const noexcept { return !ring_.looks_empty(); }
    [[nodiscard]] bool has_run_next() const noexcept { return run_next_.get() != nullptr; }
    [[nodiscard]] bool has_pinned() const noexcept { return !pinned_.looks_empty(); }
    [[nodiscard]] std::uint32_t size() const noexcept {
        return ring_.size() + pinned_.size() + (has_run_next() ? 1 : 0);
    }

private:
    friend struct ums::look_inside;

    // How many that the running fiber has made lie at the ring's back, besides the one in the
    // run-next slot. Too many if others took some.
    [[nodiscard]] std::uint32_t own_new() const noexcept {
        return has_new() && news_at_ == all_switches() ? news_.get() : 0;
    }
    // A new fiber, or one whose children have ended.
    [[nodiscard]] static bool walks(const fiber& f) noexcept {
        const auto kind = static_cast<wait_kind>(f.waits.what.get() >> wait_record::kind_shift);
        return f.is_new.get() || kind == wait_kind::scope || kind == wait_kind::future;
    }
    void give_turn_before_walk() noexcept;
    void call_some_new() noexcept;

    base::owned<std::uint32_t> ticks_left_{1};
    base::owned<fiber*> run_next_;
    fiber_ring ring_;
    fiber_ring pinned_;
    base::owned<std::uint64_t> rounds_;
    // For readers from outside: in_past_slices_ + length_ - ticks_left_ switches so far.
    base::owned<std::uint64_t> in_past_slices_;
    base::owned<std::uint32_t> length_{1};  // The length of this round.
    bool is_pinned_turn_ = false;
    bool always_looks_ = false;
    // push_new(): all_switches() when it was last called, and how many times before it since then.
    std::uint64_t news_at_ = ~std::uint64_t{0};
    base::owned<std::uint32_t> news_;
    // give_turn(): the round with the next turn; how many walks there are (the first one, and
    // those of new fibers that have left the front part), and when the last one began.
    std::uint64_t next_turn_ = 0;
    unsigned walks_ = 0;
    std::uint64_t walk_began_ = 0;
};

}  // namespace ums::sched
