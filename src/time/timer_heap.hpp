// SPDX-License-Identifier: MIT
#pragma once

// time/timer_heap.hpp: the deadlines of one processor.
//
// This is a 4-ary heap of (deadline, timer) pairs: sixteen bytes each, four children in one cache
// line, exact order. add, remove and pop are O(log4 n). Rejected: a timing wheel, which buys its
// O(1) with slack or cascades, and must search for its next deadline; a million sleepers cost the
// heap ten levels, of which the lower ones miss the cache, about 0.3 us.
//
// Not thread-safe: its owner holds a lock.

#include <cstddef>
#include <cstdint>

#include "base/look_inside.hpp"
#include "os/clock.hpp"
#include "os/mapped_array.hpp"

namespace ums::timers {

// Embedded in the object that waits; must outlive its stay in the heap.
struct timer {
    static constexpr std::uint32_t not_queued = ~std::uint32_t{0};

    os::nanoseconds at = os::never;
    std::uint32_t index = not_queued;

    [[nodiscard]] bool is_queued() const noexcept { return index != not_queued; }
};

class timer_heap {
public:
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

    // The earliest deadline, or os::never.
    [[nodiscard]] os::nanoseconds next() const noexcept {
        return entries_.empty() ? os::never : entries_[0].at;
    }

    // Requires: t is not queued.
    void add(timer& t) noexcept;

    // Requires: t is queued here.
    void remove(timer& t) noexcept;

    // Takes out and returns the earliest timer if its deadline is not after `now`, otherwise
    // returns null.
    timer* pop_expired(os::nanoseconds now) noexcept;

private:
    friend struct ums::look_inside;
    struct entry {
        os::nanoseconds at;
        timer* who;
    };

    void put(std::size_t i, entry e) noexcept {
        entries_[i] = e;
        e.who->index = static_cast<std::uint32_t>(i);
    }
    void sift_up(std::size_t i, entry e) noexcept;
    void sift_down(std::size_t i, entry e) noexcept;
    void erase(std::size_t i) noexcept;

    os::mapped_array<entry> entries_;
};

}  // namespace ums::timers
