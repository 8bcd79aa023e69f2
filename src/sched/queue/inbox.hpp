// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/inbox.hpp: fibers made ready by threads that do not hold the processor.
//
// A Treiber stack that is only ever emptied as a whole, so there is no ABA problem and a push is
// one compare-and-swap. Emptying reverses it: first come, first served. It is intrusive and
// allocates nothing.
//
// push() is a sequentially consistent read-modify-write: the pusher's following look at the idle
// set and an idler's look at the inbox after it has joined the idle set cannot both miss.

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/look_inside.hpp"
#include "sched/fiber/fiber.hpp"

namespace ums::sched {

class inbox {
public:
    void push(fiber& f) noexcept {
        fiber* first = first_.load(base::relaxed);
        do {
            f.link.set(first);
            // sync(inbox): publishes the fiber to take_all(). seq_cst: see above.
        } while (!first_.compare_exchange(first, &f, base::seq_cst, base::relaxed));
    }

    // Fibers that are linked, from `newest` to `oldest`. Of a batch, the oldest came first.
    void push_all(fiber& newest, fiber& oldest) noexcept {
        fiber* first = first_.load(base::relaxed);
        do {
            oldest.link.set(first);
            // sync(inbox): as in push().
        } while (!first_.compare_exchange(first, &newest, base::seq_cst, base::relaxed));
    }

    // seq_cst: pairs with push() as described above.
    [[nodiscard]] bool empty() const noexcept { return first_.load(base::seq_cst) == nullptr; }

    // A hint that costs one plain load.
    [[nodiscard]] bool looks_empty() const noexcept {
        return first_.load(base::relaxed) == nullptr;
    }

    // Takes the fibers in order of arrival, linked by `link`; null if there are none.
    fiber* take_all() noexcept {
        if (looks_empty()) return nullptr;
        // sync(inbox): sees the fibers.
        fiber* last_come = first_.exchange(nullptr, base::acquire);
        fiber* in_order = nullptr;
        while (last_come != nullptr) {
            fiber* next = last_come->link.get();
            last_come->link.set(in_order);
            in_order = last_come;
            last_come = next;
        }
        return in_order;
    }

private:
    friend struct ums::look_inside;

    alignas(base::cache_line) base::atomic<fiber*> first_;
};

}  // namespace ums::sched
