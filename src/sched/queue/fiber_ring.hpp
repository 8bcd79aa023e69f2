// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/fiber_ring.hpp: ready fibers, first in first out.
//
// A ring that doubles when it is full; a yield (pop one, push one) never grows it. The owner works
// at both ends, and a thief takes half from the back. The parents of dispatched fibers lie in
// front, in the order in which they will continue; so the thief gets the largest pieces of work,
// and a fiber that yields gets its turn no later. All of it is used under carry/ownership.hpp,
// except looks_empty(), which any thread may call.
//
// A ring rather than a list: the fibers that come next are known without touching the one in front
// of them, so their memory can be prefetched.

#include <cstdint>

#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "base/look_inside.hpp"
#include "sched/fiber/fiber.hpp"

namespace ums::sched {

class fiber_ring {
public:
    fiber_ring() noexcept = default;
    fiber_ring(const fiber_ring&) = delete;
    fiber_ring& operator=(const fiber_ring&) = delete;
    ~fiber_ring();

    [[nodiscard]] UMS_ALWAYS_INLINE std::uint32_t size() const noexcept {
        return tail_.get() - head_.get();
    }
    [[nodiscard]] bool looks_empty() const noexcept { return size() == 0; }
    // The position of the front: grows by one with each pop, shrinks with each push_front, and
    // starts anew when the ring grows.
    [[nodiscard]] std::uint32_t head() const noexcept { return head_.get(); }

    // Requires: there is one.
    [[nodiscard]] fiber* back() const noexcept { return slots_[(tail_.get() - 1) & mask_]; }

    UMS_ALWAYS_INLINE void push_back(fiber& f) noexcept {
        if (size() > mask_ || slots_ == nullptr) [[unlikely]]
            grow();
        const std::uint32_t tail = tail_.get();
        slots_[tail & mask_] = &f;
        tail_.set(tail + 1);
    }

    UMS_ALWAYS_INLINE void push_front(fiber& f) noexcept {
        if (size() > mask_ || slots_ == nullptr) [[unlikely]]
            grow();
        const std::uint32_t head = head_.get() - 1;
        slots_[head & mask_] = &f;
        head_.set(head);
    }

    UMS_ALWAYS_INLINE fiber* pop_front() noexcept {
        const std::uint32_t head = head_.get();
        const std::uint32_t n = tail_.get() - head;
        if (n == 0) return nullptr;
        fiber* f = slots_[head & mask_];
        head_.set(head + 1);
        if (n > 3) warm(head);
        return f;
    }

    // A yield in one step: the front leaves, and `f` goes to the back. If the ring is empty,
    // returns null and does nothing.
    UMS_ALWAYS_INLINE fiber* rotate(fiber& f) noexcept {
        const std::uint32_t head = head_.get();
        const std::uint32_t tail = tail_.get();
        const std::uint32_t n = tail - head;
        if (n == 0) [[unlikely]]
            return nullptr;
        fiber** const slots = slots_;
        const std::uint32_t mask = mask_;
        fiber* next = slots[head & mask];
        // The fiber after the next comes soon: prefetches its descriptor, then (one step later) the
        // stack that it will continue on. The ring's unused slots hold stale pointers, which are
        // harmless to prefetch but not to follow, so stay below tail.
        slots[tail & mask] = &f;
        head_.set(head + 1);
        tail_.set(tail + 1);
        if (n > prefetch_from) {
            __builtin_prefetch(slots[(head + 3) & mask]);
            __builtin_prefetch(slots[(head + 1) & mask]->context.sp);
        }
        return next;
    }

    // Moves half of `from`, from its back, to this ring, in the same order. Returns how many.
    // Requires: both owners' protection.
    std::uint32_t take_half(fiber_ring& from, std::uint32_t most) noexcept;

private:
    friend struct ums::look_inside;

    static constexpr std::uint32_t prefetch_from = 32;

    // Call after a pop at `head`: prefetches as rotate() does. Fibers that waited for long, such as
    // thousands of connections, have nothing in the cache, so this also prefetches the frames to
    // which the next one returns.
    UMS_ALWAYS_INLINE void warm(std::uint32_t head) const noexcept {
        __builtin_prefetch(slots_[(head + 3) & mask_]);
        const char* const sp = static_cast<const char*>(slots_[(head + 1) & mask_]->context.sp);
        for (int line = 0; line < 8; ++line) __builtin_prefetch(sp + line * 64);
    }

    [[gnu::noinline]] void grow() noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept {
        return (std::size_t{mask_} + 1) * sizeof(fiber*);
    }

    base::owned<std::uint32_t> head_;
    base::owned<std::uint32_t> tail_;
    std::uint32_t mask_ = 0;  // The capacity, a power of two, minus one.
    fiber** slots_ = nullptr;
};

}  // namespace ums::sched
