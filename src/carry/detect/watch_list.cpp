// SPDX-License-Identifier: MIT

// Why no observer looks at a load that is gone: the observer stores the pin, then reads the place
// again; the remover clears the place, then reads the pins. All four are sequentially consistent.
// So either the observer finds the place cleared and takes the pin back, or the remover finds the
// pin and waits.
//
// Why the remover is woken: it counts itself in `removers_`, reads `unpinned_`, then the pins. An
// observer takes its pin back, then reads `removers_`. If the remover read the pin before it was
// taken back, the observer's read comes after the remover's count. So the observer changes
// `unpinned_` after the remover read that, and the wait ends or does not begin.
#include "carry/detect/watch_list.hpp"

#include <utility>

#include "base/assert.hpp"
#include "os/futex.hpp"

namespace ums::carry {

watch_list::observer::observer(watch_list& list) noexcept : list_{list} {
    const os::lock_guard hold{list_.lock_};
    next_ = list_.observers_;
    list_.observers_ = this;
}

watch_list::observer::~observer() {
    const os::lock_guard hold{list_.lock_};
    UMS_ASSERT(pinned_.load(base::relaxed) == nullptr,  // relaxed: its own thread's.
               "an observer ends while it looks");
    observer** at = &list_.observers_;
    while (*at != this) {
        UMS_ASSERT(*at != nullptr, "an observer is not in the list of those that look");
        at = &(*at)->next_;
    }
    *at = next_;
}

bool watch_list::observer::pin(const base::atomic<load*>& place, load& w) noexcept {
    pinned_.store(&w, base::seq_cst);                  // See above.
    if (place.load(base::seq_cst) == &w) return true;  // Acquire, too: sync(block.list).
    unpin();
    return false;
}

void watch_list::observer::unpin() noexcept {
    pinned_.store(nullptr, base::seq_cst);  // See above. Release, too: the visit is over.
    if (list_.removers_.load(base::seq_cst) == 0) return;
    list_.unpinned_.fetch_add(1, base::release);  // A remover that sees it sees the visit over.
    os::futex_wake(list_.unpinned_.address(), __INT_MAX__);
}

watch_list::~watch_list() {
    UMS_ASSERT(observers_ == nullptr, "a detector was destroyed while it looks");
    for (const auto& place : first_.places)
        UMS_ASSERT(place.load(base::relaxed) == nullptr,  // relaxed: no other thread is left.
                   "a detector was destroyed that still watches a load");
    for (chunk* c = first_.next.load(base::relaxed); c != nullptr;) {
        chunk* const gone = c;
        c = c->next.load(base::relaxed);
        delete gone;
    }
}

void watch_list::add(load& w) {
    chunk* spare = nullptr;  // Not allocated under the lock.
    for (;;) {
        lock_.acquire();
        chunk* last = &first_;
        for (chunk* c = last; c != nullptr; c = c->next.load(base::relaxed)) {
            for (auto& place : c->places) {
                // relaxed, as above: changed only under the lock.
                const load* const there = place.load(base::relaxed);
                UMS_ASSERT(there != &w, "a load is watched twice");
                if (there != nullptr) continue;
                place.store(&w, base::release);  // sync(block.list): publishes the load.
                lock_.release();
                delete spare;
                return;
            }
            last = c;
        }
        // sync(block.list): publishes the empty chunk.
        const bool is_full = spare == nullptr;
        if (!is_full) last->next.store(std::exchange(spare, nullptr), base::release);
        lock_.release();
        if (is_full) spare = new chunk;
    }
}

bool watch_list::is_pinned(const load& w) noexcept {
    const os::lock_guard hold{lock_};
    for (const observer* o = observers_; o != nullptr; o = o->next_)
        if (o->pinned_.load(base::seq_cst) == &w) return true;  // See above.
    return false;
}

void watch_list::remove(load& w) noexcept {
    {
        const os::lock_guard hold{lock_};
        bool found = false;
        for (chunk* c = &first_; c != nullptr && !found; c = c->next.load(base::relaxed))
            for (auto& place : c->places)
                if (place.load(base::relaxed) == &w) {
                    place.store(nullptr, base::seq_cst);  // See above.
                    found = true;
                }
        UMS_ASSERT(found, "a load is removed that is not watched");
    }
    removers_.fetch_add(1, base::seq_cst);  // See above.
    for (;;) {
        const std::uint32_t seen = unpinned_.load(base::acquire);
        if (!is_pinned(w)) break;
        os::futex_wait(unpinned_, seen);
    }
    // relaxed: a count that is too high only causes a useless wake-up.
    const std::uint32_t before = removers_.fetch_sub(1, base::relaxed);
    UMS_ASSERT(before != 0, "a list has lost count of those that remove from it");
}

}  // namespace ums::carry
