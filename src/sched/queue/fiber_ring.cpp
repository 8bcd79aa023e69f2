// SPDX-License-Identifier: MIT
#include "sched/queue/fiber_ring.hpp"

#include <algorithm>
#include <utility>

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
    const std::uint32_t front = in_front();
    const std::uint32_t head = head_.get();
    for (std::uint32_t i = 0; i < n; ++i) slots[i] = slots_[(head + i) & mask_];
    if (slots_ != nullptr) os::unmap(slots_, bytes());
    slots_ = slots;
    mask_ = bigger - 1;
    head_.set(0);
    front_end_ = front;
}

void fiber_ring::bring_to_front(std::uint32_t n) noexcept {
    // Turned round first, so that the oldest comes off the back first.
    const std::uint32_t end = head_.get() + size();
    for (std::uint32_t i = 0; i < n / 2; ++i)
        std::swap(slots_[(end - n + i) & mask_], slots_[(end - 1 - i) & mask_]);
    for (; n != 0; --n) put_in_front(*back());
}

std::uint32_t fiber_ring::give_turn() noexcept {
    const std::uint32_t front = in_front();
    const std::uint32_t others = size() - front;
    if (front == 0 || others == 0) return 0;
    fiber* const f = slots_[front_end_ & mask_];
    close_gap(front, 1);
    front_end_ = head_.get() + front;
    push_in_front(*f);
    return std::min(front, others);
}

bool fiber_ring::let_oldest_new_go() noexcept {
    const std::uint32_t front = in_front();
    const std::uint32_t last = head_.get() + front - 1;
    for (std::uint32_t i = 0; i < front; ++i) {
        fiber* const f = slots_[(last - i) & mask_];
        if (!f->is_new.get()) continue;
        for (std::uint32_t at = last - i; at != last; ++at)
            slots_[at & mask_] = slots_[(at + 1) & mask_];
        slots_[last & mask_] = f;
        front_end_ = last;
        return true;
    }
    return false;
}

std::uint32_t fiber_ring::oldest_generation() const noexcept {
    const std::uint32_t last = head_.get() + in_front() - 1;
    std::uint32_t n = (in_front() + 1) / 2;
    // A creator's children lie side by side: what is between two of them is a third.
    while (n > 1 && slots_[(last - (n - 1)) & mask_]->spawner != slots_[last & mask_]->spawner)
        n = (n + 1) / 2;
    return n;
}

void fiber_ring::close_gap(std::uint32_t at, std::uint32_t n) noexcept {
    const std::uint32_t head = head_.get();
    const std::uint32_t behind = size() - at - n;
    if (at <= behind) {
        for (std::uint32_t i = at; i-- != 0;)
            slots_[(head + n + i) & mask_] = slots_[(head + i) & mask_];
        head_.set(head + n);
    } else {
        for (std::uint32_t i = at; i != at + behind; ++i)
            slots_[(head + i) & mask_] = slots_[(head + n + i) & mask_];
    }
    size_.set(at + behind);
}

std::uint32_t fiber_ring::take_oldest(fiber_ring& from, std::uint32_t kept,
                                      std::uint32_t most) noexcept {
    const std::uint32_t front = from.in_front();
    const std::uint32_t others = from.size() - front;
    const std::uint32_t of_front = front == 0 ? 0 : std::min(from.oldest_generation(), most);
    const std::uint32_t eligible = front == 0 ? others : others - std::min(kept, others);
    const std::uint32_t n = of_front + std::min((eligible + 1) / 2, most - of_front);
    const std::uint32_t at = front - of_front;
    const std::uint32_t first = from.head_.get() + at;
    const bool was_empty = looks_empty();
    // The oldest of the front part comes next here, and the next thief finds the next oldest last.
    if (of_front != 0) push_back(*from.slots_[(first + of_front - 1) & from.mask_]);
    for (std::uint32_t i = 0; i < n; ++i)
        if (i + 1 != of_front) push_back(*from.slots_[(first + i) & from.mask_]);
    if (was_empty) front_end_ = head_.get() + of_front;
    from.close_gap(at, n);
    from.front_end_ = from.head_.get() + at;
    return n;
}

}  // namespace ums::sched
