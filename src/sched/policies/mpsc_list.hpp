// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/mpsc_list.hpp: a queue that many threads push to without a lock: a list through
// the fibers themselves.
//
// push() exchanges the back, then links the fiber that was there to the new one; if there was none,
// it makes the new one the first. Between the two steps the list is cut: pop() waits a little for
// the second step, then returns nothing, and looks_empty() says that there is something. (After
// Vyukov's intrusive queue. Its dummy node would be a fiber too many here: an empty list has no
// node, and its back is null.)
//
// Cost: push() one exchange; pop() the consumer's turn, and for the last fiber one
// compare-and-swap.

#include "base/cache_line.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/policies/mpsc_end.hpp"

namespace ums::sched {

class mpsc_list {
public:
    void push(fiber& f) noexcept {
        f.link.set(nullptr);
        // sync(mpsc_list): acquire orders the link of the previous fiber after that fiber's own
        // push. seq_cst: the pusher's following look at the idle set and an idler's look at the
        // list cannot both miss.
        if (fiber* const before = back_.exchange(&f, base::seq_cst))
            before->link.publish(&f);
        else
            first_.store(&f, base::release);  // sync(mpsc_list): publishes the fiber.
    }
    // Returns the fiber that came first, or null.
    [[nodiscard]] fiber* pop() noexcept {
        if (looks_empty()) return nullptr;
        const mpsc_end::turn mine{end_};
        if (!mine) return nullptr;
        if (front_ == nullptr) {
            // sync(mpsc_list): sees the fiber. Null if its pusher is between the steps, or there is
            // none.
            front_ = first_.load(base::acquire);
            if (front_ == nullptr) return nullptr;
            first_.store(nullptr, base::relaxed);  // relaxed: pushers store only to an empty list.
        }
        fiber* const f = front_;
        fiber* next = f->link.take();
        if (next == nullptr) {
            front_ = nullptr;
            fiber* last = f;
            // sync(mpsc_list): a thread that finds the list empty comes after what was done with
            // it.
            if (back_.compare_exchange(last, nullptr, base::acq_rel, base::relaxed)) return f;
            for (int i = 0; (next = f->link.take()) == nullptr; ++i) {
                if (i == patience) {
                    front_ = f;
                    return nullptr;
                }
                base::spin_pause();
            }
        }
        front_ = next;
        return f;
    }
    // push() makes a seq_cst change of a word that looks_empty() loads with seq_cst, so nothing is
    // left to do.
    void settle() const noexcept {}
    [[nodiscard]] bool looks_empty() const noexcept {
        return back_.load(base::seq_cst) == nullptr;  // seq_cst: see push().
    }

private:
    static constexpr int patience = 100;

    // Used by pushers:
    alignas(base::cache_line) base::atomic<fiber*> back_;
    base::atomic<fiber*> first_;  // The first fiber of a list that was empty.
    // Used by the consumer:
    alignas(base::cache_line) mpsc_end end_;
    fiber* front_ = nullptr;
};

}  // namespace ums::sched
