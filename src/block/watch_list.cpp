// SPDX-License-Identifier: MIT

// Who removes a thread and finds it pinned marks it as leaving and reads the count, both under the lock,
// then waits while the count is the same. Who unpins last does so under the lock: if it sees the mark, it
// raises the count afterwards, so the wait ends or does not begin. If it does not, its section came
// before the remover's, which then finds no pin.
#include "block/watch_list.hpp"

#include "base/assert.hpp"
#include "os/futex.hpp"

namespace ums::block {

watch_list::~watch_list() {
    UMS_ASSERT(first_ == nullptr, "a detector was destroyed that still watches a thread");
}

void watch_list::add(watched& w) noexcept {
    lock_.acquire();
    UMS_ASSERT(w.next_ == nullptr, "a thread is watched twice");
    w.scan_ = scan_;  // A scan that is under way passes it by.
    if (first_ == nullptr) {
        first_ = w.next_ = w.previous_ = &w;
    } else {
        w.next_ = first_;
        w.previous_ = first_->previous_;
        w.previous_->next_ = first_->previous_ = &w;
    }
    watched*& head = bucket(w.tid());
    w.next_in_bucket_ = head;
    head = &w;
    lock_.release();
}

void watch_list::remove(watched& w) noexcept {
    lock_.acquire();
    UMS_ASSERT(w.next_ != nullptr, "a thread is removed that is not watched");
    watched** at = &bucket(w.tid());
    while (*at != &w) at = &(*at)->next_in_bucket_;
    *at = w.next_in_bucket_;
    if (w.next_ == &w) {
        first_ = nullptr;
    } else {
        w.previous_->next_ = w.next_;
        w.next_->previous_ = w.previous_;
        if (first_ == &w) first_ = w.next_;
    }
    w.next_ = w.previous_ = w.next_in_bucket_ = nullptr;
    w.is_leaving_ = true;
    while (w.pins_ != 0) {
        // relaxed: read under the lock, as it is raised after the lock was held; see above.
        const std::uint32_t seen = unpinned_.load(base::relaxed);
        lock_.release();
        os::futex_wait(unpinned_, seen);
        lock_.acquire();
    }
    w.is_leaving_ = false;
    lock_.release();
}

watched* watch_list::find_locked(int tid) noexcept {
    watched* w = bucket(tid);
    while (w != nullptr && w->tid() != tid) w = w->next_in_bucket_;
    return w;
}

void watch_list::unpin(watched& w) noexcept {
    lock_.acquire();
    const bool is_awaited = --w.pins_ == 0 && w.is_leaving_;
    // relaxed: a counter that only the futex compares; the lock orders the rest.
    if (is_awaited) unpinned_.fetch_add(1, base::relaxed);
    lock_.release();
    if (is_awaited) os::futex_wake(unpinned_.address(), __INT_MAX__);
}

void watch_list::begin_scan() noexcept {
    lock_.acquire();
    ++scan_;
    lock_.release();
}

watch_list::pin watch_list::next() noexcept {
    lock_.acquire();
    watched* w = first_;
    if (w != nullptr && w->scan_ == scan_) w = nullptr;
    if (w != nullptr) {
        w->scan_ = scan_;
        first_ = w->next_;  // Those that were visited come last.
        ++w->pins_;
    }
    lock_.release();
    return {*this, w};
}

}  // namespace ums::block
