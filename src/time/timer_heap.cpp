// SPDX-License-Identifier: MIT
#include "time/timer_heap.hpp"

#include <algorithm>

namespace ums::timers {

void timer_heap::add(timer& t) noexcept {
    UMS_DEBUG_ASSERT(!t.is_queued(), "a timer was queued twice");
    entries_.push_back({t.at, &t});
    sift_up(entries_.size() - 1, {t.at, &t});
}

void timer_heap::remove(timer& t) noexcept {
    UMS_ASSERT(t.index < entries_.size() && entries_[t.index].who == &t,
               "a timer was removed from a heap that does not hold it");
    erase(t.index);
}

timer* timer_heap::pop_expired(os::nanoseconds now) noexcept {
    if (entries_.empty() || entries_[0].at > now) return nullptr;
    timer* t = entries_[0].who;
    erase(0);
    return t;
}

void timer_heap::erase(std::size_t i) noexcept {
    entries_[i].who->index = timer::not_queued;
    const entry last = entries_[entries_.size() - 1];
    entries_.pop_back();
    if (i == entries_.size()) {
        if (entries_.empty()) entries_.shrink();  // Give a million sleepers' memory back.
        return;
    }
    if (i > 0 && last.at < entries_[(i - 1) / 4].at)
        sift_up(i, last);
    else
        sift_down(i, last);
}

void timer_heap::sift_up(std::size_t i, entry e) noexcept {
    while (i > 0) {
        const std::size_t parent = (i - 1) / 4;
        if (entries_[parent].at <= e.at) break;
        put(i, entries_[parent]);
        i = parent;
    }
    put(i, e);
}

void timer_heap::sift_down(std::size_t i, entry e) noexcept {
    const std::size_t n = entries_.size();
    for (;;) {
        const std::size_t first = i * 4 + 1;
        if (first >= n) break;
        std::size_t least = first;
        for (std::size_t c = first + 1; c < std::min(first + 4, n); ++c)
            if (entries_[c].at < entries_[least].at) least = c;
        if (e.at <= entries_[least].at) break;
        put(i, entries_[least]);
        i = least;
    }
    put(i, e);
}

}  // namespace ums::timers
