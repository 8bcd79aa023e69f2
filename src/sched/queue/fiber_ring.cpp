// SPDX-License-Identifier: MIT
#include "sched/queue/fiber_ring.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "os/memory.hpp"

namespace ums::sched {

fiber_ring::~fiber_ring() {
    if (slots_ != nullptr) os::unmap(slots_, bytes());
}

void fiber_ring::grow() noexcept {
    const std::uint32_t bigger =
        slots_ == nullptr ? os::page_bytes / sizeof(fiber*) : (mask_ + 1) * 2;
    auto** slots = static_cast<fiber**>(os::map(bigger * sizeof(fiber*)));
    if (slots == nullptr) base::fatal("out of memory: a run queue of %u fibers", size());
    const std::uint32_t n = size();
    const std::uint32_t head = head_.get();
    for (std::uint32_t i = 0; i < n; ++i) slots[i] = slots_[(head + i) & mask_];
    if (slots_ != nullptr) os::unmap(slots_, bytes());
    slots_ = slots;
    mask_ = bigger - 1;
    head_.set(0);
    tail_.set(n);
}

std::uint32_t fiber_ring::take_half(fiber_ring& from, std::uint32_t most) noexcept {
    const std::uint32_t n = std::min((from.size() + 1) / 2, most);
    const std::uint32_t first = from.tail_.get() - n;
    for (std::uint32_t i = 0; i < n; ++i) push_back(*from.slots_[(first + i) & from.mask_]);
    from.tail_.set(first);
    return n;
}

}  // namespace ums::sched
