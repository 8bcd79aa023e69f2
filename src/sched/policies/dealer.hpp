// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/dealer.hpp: policies that give each processor a queue of its own, and each fiber a
// processor.
//
// A new fiber is dealt to the next processor in turn, and goes back there whenever it becomes
// ready, so the data that it works on stays in that processor's caches. A processor with nothing to
// run takes fibers of others, one by one; from then on such a fiber belongs to the thief. (uThreads
// deals its threads out in this way; its processors do not steal.)
//
// Queue: any number of threads push(). Any thread may pop(), too, and may get nothing although
// there is something, while another one is inside. The size is a hint, but looks_empty() is false
// once a push() has returned. settle(): of a push() and the caller, which has stored something with
// seq_cst, at least one sees the other: the caller by looks_empty() after this, the pusher by a
// seq_cst load after its push().

#include "base/cache_line.hpp"
#include "sched/fiber/access.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/policies/per_processor.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

template <class Queue>
class dealer : public policy {
public:
    void attach(unsigned processor) override {
        queues_.attach(processor);
        queues_.at(processor).is_open.store(true, base::seq_cst);
    }
    void detach(unsigned processor) override {
        queues_.detach(processor);
        place& left = queues_.at(processor);
        left.is_open.store(false, base::seq_cst);
        left.queue.settle();
        deal_again(left);
    }

    void ready(fiber_ref f, unsigned) noexcept override {
        fiber& it = *access::fiber_of(f);
        const unsigned n = queues_.active();
        if (it.kept.place.get() == 0 || it.kept.place.get() > n)
            // relaxed: any order of the deals will do.
            it.kept.place.set(turn_.fetch_add(1, base::relaxed) % n + 1);
        place& to = queues_.at(it.kept.place.get() - 1);
        to.queue.push(it);
        // seq_cst: of this and detach(), which closes, settles and then empties, at least one sees
        // the other.
        if (!to.is_open.load(base::seq_cst)) deal_again(to);
    }
    fiber_ref next(unsigned processor) noexcept override {
        return access::ref(queues_.at(processor).queue.pop());
    }
    fiber_ref steal(unsigned thief, unsigned victim) noexcept override {
        if (victim >= queues_.made()) return {};
        fiber* const f = queues_.at(victim).queue.pop();
        if (f == nullptr) return {};
        f->kept.place.set(thief + 1);
        return access::ref(f);
    }
    // If the processor is removed before the fiber is ready, ready() finds it another one.
    void placed(fiber_ref f, unsigned processor) noexcept override {
        access::fiber_of(f)->kept.place.set(processor + 1);
    }
    bool empty(unsigned processor) const noexcept override {
        const unsigned n = queues_.made();
        for (unsigned i = 0; i < n; ++i)
            if (!queues_.at((processor + i) % n).queue.looks_empty()) return false;
        return true;
    }

private:
    struct alignas(base::cache_line) place {
        Queue queue;
        base::atomic<bool> is_open;
    };

    // Deals the fibers of a closed queue to the processors that are left.
    void deal_again(place& closed) noexcept {
        while (!closed.queue.looks_empty()) {
            fiber* const f = closed.queue.pop();
            if (f == nullptr) {
                base::spin_pause();
                continue;
            }
            f->kept.place.set(0);
            ready(access::ref(f), outside);
        }
    }

    per_processor<place> queues_;
    alignas(base::cache_line) base::atomic<unsigned> turn_;
};

}  // namespace ums::sched
