// SPDX-License-Identifier: MIT
//
// A pairing heap: each fiber comes before the fibers behind it, which are a list by their queue
// links. Two heaps are melded by putting the one whose root comes later behind the other root.
// (Fredman, Sedgewick, Sleator, Tarjan: "The pairing heap", Algorithmica 1986; the roots left by a
// pop are melded in pairs, then from the last pair on.)

#include <utility>

#include "sched/fiber/access.hpp"
#include "ums/policy.hpp"

namespace ums {

using sched::access;

namespace {

bool comes_before(const sched::fiber& a, const sched::fiber& b) noexcept {
    return a.order != b.order ? a.order < b.order : a.arrival < b.arrival;
}

// Neither is null. This does not read the links of the two roots.
sched::fiber* meld(sched::fiber* a, sched::fiber* b) noexcept {
    if (comes_before(*b, *a)) std::swap(a, b);
    b->link.set(a->first_behind);
    a->first_behind = b;
    return a;
}

}  // namespace

void ordered_fiber_queue::push(fiber_ref r, std::uint64_t key) noexcept {
    sched::fiber* const f = access::fiber_of(r);
    f->first_behind = nullptr;
    f->order = key;
    f->arrival = arrivals_++;
    root_ = root_ != nullptr ? meld(root_, f) : f;
    ++size_;
}

fiber_ref ordered_fiber_queue::pop_front() noexcept {
    sched::fiber* const first = root_;
    if (first == nullptr) return {};
    sched::fiber* pairs = nullptr;  // The last pair comes first.
    for (sched::fiber* a = first->first_behind; a != nullptr;) {
        sched::fiber* const b = a->link.get();
        sched::fiber* const rest = b != nullptr ? b->link.get() : nullptr;
        sched::fiber* const pair = b != nullptr ? meld(a, b) : a;
        pair->link.set(pairs);
        pairs = pair;
        a = rest;
    }
    root_ = nullptr;
    while (pairs != nullptr) {
        sched::fiber* const next = pairs->link.get();
        root_ = root_ != nullptr ? meld(root_, pairs) : pairs;
        pairs = next;
    }
    --size_;
    return access::ref(first);
}

std::uint64_t ordered_fiber_queue::front_key() const noexcept { return root_->order; }

}  // namespace ums
