// SPDX-License-Identifier: MIT
#include "sched/fiber/access.hpp"
#include "ums/policy.hpp"

namespace ums {

using sched::access;

void fiber_queue::push_back(fiber_ref r) noexcept {
    sched::fiber* f = access::fiber_of(r);
    f->link.set(nullptr);
    if (last_ == nullptr)
        first_ = f;
    else
        last_->link.set(f);
    last_ = f;
    ++size_;
}

void fiber_queue::push_front(fiber_ref r) noexcept {
    sched::fiber* f = access::fiber_of(r);
    f->link.set(first_);
    first_ = f;
    if (last_ == nullptr) last_ = f;
    ++size_;
}

fiber_ref fiber_queue::pop_front() noexcept {
    sched::fiber* f = first_;
    if (f == nullptr) return {};
    first_ = f->link.get();
    if (first_ == nullptr) last_ = nullptr;
    --size_;
    return access::ref(f);
}

}  // namespace ums
