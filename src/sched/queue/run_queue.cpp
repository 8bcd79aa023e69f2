// SPDX-License-Identifier: MIT
#include "sched/queue/run_queue.hpp"

namespace ums::sched {

void run_queue::push_back(fiber& f) noexcept {
    if (f.pinned_to.get() == nullptr) {
        ring_.push_back(f);
    } else {
        pinned_.push_back(f);
        ticks_left_.set(1);
    }
}

void run_queue::push_front(fiber& f) noexcept {
    if (f.pinned_to.get() == nullptr)
        ring_.push_front(f);
    else
        push_back(f);
}

std::uint32_t run_queue::steal(run_queue& victim, std::uint32_t most, bool slot_too) noexcept {
    const std::uint32_t n = ring_.take_half(victim.ring_, most);
    if (n != 0 || !slot_too) return n;
    fiber* const next = victim.run_next_.get();
    if (next == nullptr || next->pinned_to.get() != nullptr) return 0;
    victim.run_next_.set(nullptr);
    ring_.push_back(*next);
    return 1;
}

}  // namespace ums::sched
