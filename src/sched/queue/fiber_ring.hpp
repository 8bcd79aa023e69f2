// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/fiber_ring.hpp: ready fibers: those of a walk in front, last in first out, and the
// others behind them, first in first out.
//
// A ring that doubles when it is full; a yield (pop one, push one) never grows it. The front part
// is what a walk through a tree of fibers has still to do: the creators of dispatched fibers, and
// the new fibers that their creator waits for. It is a stack, so a tree is walked depth first. The
// others wait behind it until give_turn() puts them before it. A thief takes the oldest of the
// front part, which are the largest pieces of work, and of the others those that have waited
// longest. All of it is used under carry/ownership.hpp, except looks_empty(), which any thread may
// call.
//
// A ring rather than a list: the fibers that come next are known without touching the one in front
// of them, so their memory can be prefetched.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/look_inside.hpp"
#include "sched/fiber/fiber.hpp"

namespace ums::sched {

class fiber_ring {
public:
    fiber_ring() noexcept = default;
    fiber_ring(const fiber_ring&) = delete;
    fiber_ring& operator=(const fiber_ring&) = delete;
    ~fiber_ring();

    [[nodiscard]] UMS_ALWAYS_INLINE std::uint32_t size() const noexcept { return size_.get(); }
    // One word says it, so a ring that is never empty never looks so to an idle processor,
    // although a yield moves both ends.
    [[nodiscard]] bool looks_empty() const noexcept { return size() == 0; }
    // The position of the front: grows by one with each pop, shrinks with each fiber that comes in
    // front, and starts anew when the ring grows.
    [[nodiscard]] std::uint32_t head() const noexcept { return head_.get(); }

    // Requires: there is one.
    [[nodiscard]] fiber* back() const noexcept {
        return slots_[(head_.get() + size() - 1) & mask_];
    }

    UMS_ALWAYS_INLINE void push_back(fiber& f) noexcept {
        if (size() > mask_ || slots_ == nullptr) [[unlikely]]
            grow();
        const std::uint32_t n = size();
        slots_[(head_.get() + n) & mask_] = &f;
        size_.set(n + 1);
    }

    // To be the next. It becomes part of the front part, if there is one; else one of the others.
    void push_front(fiber& f) noexcept {
        const bool is_part = in_front() != 0;
        push_in_front(f);
        if (!is_part) front_end_ = head_.get();
    }

    // --- The front part ---
    [[nodiscard]] UMS_ALWAYS_INLINE std::uint32_t in_front() const noexcept {
        const auto n = static_cast<std::int32_t>(front_end_ - head_.get());
        return n <= 0 ? 0 : std::min(static_cast<std::uint32_t>(n), size());
    }
    [[nodiscard]] std::uint32_t behind() const noexcept { return size() - in_front(); }
    UMS_ALWAYS_INLINE void push_in_front(fiber& f) noexcept {
        if (size() > mask_ || slots_ == nullptr) [[unlikely]]
            grow();
        put_in_front(f);
        size_.set(size() + 1);
    }
    // The last n become part of it, the very last as the next. Requires: n <= behind().
    void bring_to_front(std::uint32_t n) noexcept;
    // Its oldest that has not run yet becomes the first of the others. False: it has none.
    bool let_oldest_new_go() noexcept;
    // The first of the others comes before the front part. Returns how many slots were written.
    std::uint32_t give_turn() noexcept;
    // Returns whether there is one. Call this before a thousand million fibers have left at the
    // front since the last time: a position says little after that.
    [[nodiscard]] bool has_front_part() noexcept {
        const std::uint32_t head = head_.get();
        if (static_cast<std::int32_t>(front_end_ - head) > 0) [[unlikely]]
            return true;
        front_end_ = head;
        return false;
    }

    UMS_ALWAYS_INLINE fiber* pop_front() noexcept {
        const std::uint32_t head = head_.get();
        const std::uint32_t n = size();
        if (n == 0) return nullptr;
        fiber* f = slots_[head & mask_];
        head_.set(head + 1);
        size_.set(n - 1);
        if (n > 3) warm(head);
        return f;
    }

    // A yield in one step: the front leaves, and `f` goes to the back. If the ring is empty,
    // returns null and does nothing.
    UMS_ALWAYS_INLINE fiber* rotate(fiber& f) noexcept {
        const std::uint32_t head = head_.get();
        const std::uint32_t n = size();
        if (n == 0) [[unlikely]]
            return nullptr;
        fiber** const slots = slots_;
        const std::uint32_t mask = mask_;
        fiber* next = slots[head & mask];
        // The fiber after the next comes soon: prefetches its descriptor, then (one step later) the
        // stack that it will continue on. The ring's unused slots hold stale pointers, which are
        // harmless to prefetch but not to follow, so stay before the back.
        slots[(head + n) & mask] = &f;
        head_.set(head + 1);
        if (n > prefetch_from) {
            __builtin_prefetch(slots[(head + 3) & mask]);
            __builtin_prefetch(slots[(head + 1) & mask]->context.sp);
        }
        return next;
    }

    // Moves to this ring, `most` at most: of the front part of `from` the oldest, with others that
    // have the same creator, up to half of that part; and half of the others, those that have
    // waited longest. The last `kept` of these are not counted while there is a front part. Returns
    // how many. Requires: both owners' protection.
    std::uint32_t take_oldest(fiber_ring& from, std::uint32_t kept, std::uint32_t most) noexcept;

private:
    friend struct ums::look_inside;

    static constexpr std::uint32_t prefetch_from = 32;

    // Call after a pop at `head`: prefetches as rotate() does. Fibers that waited for long, such as
    // thousands of connections, have nothing in the cache, so this also prefetches the frames to
    // which the next one returns.
    UMS_ALWAYS_INLINE void warm(std::uint32_t head) const noexcept {
        __builtin_prefetch(slots_[(head + 3) & mask_]);
        prefetch(slots_[(head + 1) & mask_]->context.sp, std::make_index_sequence<8>{});
    }
    // Not a loop: that would take four times as many instructions.
    template <std::size_t... line>
    UMS_ALWAYS_INLINE static void prefetch(const void* sp, std::index_sequence<line...>) noexcept {
        (__builtin_prefetch(static_cast<const char*>(sp) + line * base::cache_line), ...);
    }

    // Of a ring with room for it, whose size the caller changes; or it was the last.
    UMS_ALWAYS_INLINE void put_in_front(fiber& f) noexcept {
        const std::uint32_t head = head_.get();
        if (static_cast<std::int32_t>(front_end_ - head) < 0) front_end_ = head;
        slots_[(head - 1) & mask_] = &f;
        head_.set(head - 1);
    }
    // Those that a thief takes of a front part that is not empty.
    [[nodiscard]] std::uint32_t oldest_generation() const noexcept;
    // Removes n, beginning with the one at place `at`. Moves those before them, or those behind.
    void close_gap(std::uint32_t at, std::uint32_t n) noexcept;
    [[gnu::noinline]] void grow() noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept {
        return (std::size_t{mask_} + 1) * sizeof(fiber*);
    }

    base::owned<std::uint32_t> head_;
    base::owned<std::uint32_t> size_;
    std::uint32_t mask_ = 0;  // The capacity, a power of two, minus one.
    // The front part ends here. If the head is at it, or has passed it, there is none.
    std::uint32_t front_end_ = 0;
    fiber** slots_ = nullptr;
};

}  // namespace ums::sched
