// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/mpsc_array.hpp: a queue that many threads push to without a lock: an array of
// places.
//
// A place's turn says which thread may use it: `n` means the nth pusher, which takes it by
// advancing the back; `n + 1` means the consumer; and a whole array later it is the next pusher's.
// (This is Vyukov's bounded queue, with one consumer.) A fiber that finds the array full goes into
// an inbox, a stack that the consumer takes as a whole and reverses. As long as there is anything
// in it, pushers keep to it, so that no fiber is overtaken for ever.
//
// Unlike in a list, the consumer reads the place of a fiber from the array, and nothing of the
// fiber.
//
// Cost: push() one compare-and-swap; pop() the consumer's turn. 16 KiB for each processor.

#include <cstddef>

#include "base/cache_line.hpp"
#include "sched/fiber/access.hpp"
#include "sched/policies/mpsc_end.hpp"
#include "sched/queue/inbox.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

class mpsc_array {
public:
    mpsc_array() noexcept {
        for (std::size_t i = 0; i < size; ++i) places_[i].turn.store(i, base::relaxed);
    }

    void push(fiber& f) noexcept {
        if (!overflow_.looks_empty() || !push_in_array(f)) overflow_.push(f);
    }
    // Returns the fiber that came first, or null.
    [[nodiscard]] fiber* pop() noexcept {
        if (looks_empty()) return nullptr;
        const mpsc_end::turn mine{end_};
        if (!mine) return nullptr;
        fiber* f = access::fiber_of(taken_.pop_front());
        if (f == nullptr) f = pop_from_array();
        if (f == nullptr) f = take_overflow();
        taken_size_.set(taken_.size());
        return f;
    }
    // push() makes a seq_cst change of a word that looks_empty() loads with seq_cst, so nothing is
    // left to do.
    void settle() const noexcept {}
    [[nodiscard]] bool looks_empty() const noexcept {
        // seq_cst: pairs with the compare-and-swap of a push, as the inbox's look does with its
        // own. The overflow comes first: take_overflow() announces before it empties it.
        return overflow_.empty() && front_.get() == back_.load(base::seq_cst) &&
               taken_size_.get() == 0;
    }

private:
    static constexpr std::size_t size = 1024;
    struct place {
        base::atomic<std::size_t> turn;
        fiber* who = nullptr;
    };

    bool push_in_array(fiber& f) noexcept {
        std::size_t at = back_.load(base::relaxed);
        for (;;) {
            place& to = places_[at % size];
            // sync(mpsc_array): the place is free.
            const std::size_t turn = to.turn.load(base::acquire);
            if (turn != at) {
                if (turn < at) return false;  // The array is full.
                at = back_.load(base::relaxed);
                continue;
            }
            // seq_cst: see looks_empty().
            if (!back_.compare_exchange(at, at + 1, base::seq_cst, base::relaxed)) continue;
            to.who = &f;
            to.turn.store(at + 1, base::release);  // sync(mpsc_array): publishes the fiber.
            return true;
        }
    }
    fiber* pop_from_array() noexcept {
        const std::size_t at = front_.get();
        place& from = places_[at % size];
        // sync(mpsc_array): sees the fiber.
        if (from.turn.load(base::acquire) != at + 1) return nullptr;
        fiber* const f = from.who;
        from.turn.store(at + size, base::release);  // sync(mpsc_array): the place is free.
        front_.set(at + 1);
        return f;
    }
    // Not while a pusher is on its way into the array, because the overflow came later.
    fiber* take_overflow() noexcept {
        if (front_.get() != back_.load(base::relaxed)) return nullptr;
        if (overflow_.looks_empty()) return nullptr;
        // Fibers on their way count: pop() says in the end how many there are.
        taken_size_.set(1);
        base::full_fence();  // A thread that sees the overflow empty sees this.
        fiber* const first = overflow_.take_all();
        for (fiber* f = first->link.get(); f != nullptr;) {
            fiber* const next = f->link.get();
            taken_.push_back(access::ref(f));
            f = next;
        }
        return first;
    }

    // Used by pushers:
    alignas(base::cache_line) base::atomic<std::size_t> back_;
    inbox overflow_;
    // Used by the consumer:
    alignas(base::cache_line) mpsc_end end_;
    base::owned<std::size_t> front_;       // Others read it as a hint.
    fiber_queue taken_;                    // Taken from the overflow.
    base::owned<std::size_t> taken_size_;  // Others read it as a hint.

    place places_[size];
};

}  // namespace ums::sched
