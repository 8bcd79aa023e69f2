// SPDX-License-Identifier: MIT
#pragma once

// block/watch_list.hpp: the threads that a detector watches.
//
// The detector's thread works on one at a time, outside of the lock: it pins it, asks and calls it,
// and unpins it. remove() waits for the pins to go. No memory is allocated: a thread that is blocked
// inside the allocator must not stop its own detection.

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "block/watched.hpp"
#include "os/lock.hpp"

namespace ums::block {

class watch_list {
public:
    // A thread that remove() waits for. Empty if there is none.
    class pin {
    public:
        pin(watch_list& list, watched* of) noexcept : list_{list}, of_{of} {}
        ~pin() {
            if (of_ != nullptr) list_.unpin(*of_);
        }
        pin(const pin&) = delete;
        pin& operator=(const pin&) = delete;
        explicit operator bool() const noexcept { return of_ != nullptr; }
        watched& operator*() const noexcept { return *of_; }
        watched* operator->() const noexcept { return of_; }

    private:
        watch_list& list_;
        watched* const of_;
    };

    watch_list() noexcept = default;
    ~watch_list();  // Requires: empty.
    watch_list(const watch_list&) = delete;
    watch_list& operator=(const watch_list&) = delete;

    void add(watched& w) noexcept;
    // Returns when nobody has it pinned.
    void remove(watched& w) noexcept;

    // One scan at a time: next() gives each thread that was there at begin() and still is, then none.
    void begin_scan() noexcept;
    [[nodiscard]] pin next() noexcept;

    // The thread with this tid if `wanted` is true of it; called under the lock.
    template <class F>
    [[nodiscard]] pin find(int tid, F wanted) noexcept {
        lock_.acquire();
        watched* w = find_locked(tid);
        if (w != nullptr && !wanted(*w)) w = nullptr;
        if (w != nullptr) ++w->pins_;
        lock_.release();
        return {*this, w};
    }

    // Calls f(find), where find(tid) gives a thread or null, under the lock.
    template <class F>
    void with_all(F f) noexcept {
        lock_.acquire();
        f([this](int tid) noexcept { return find_locked(tid); });
        lock_.release();
    }

private:
    static constexpr std::size_t buckets = 256;

    watched*& bucket(int tid) noexcept { return bucket_[static_cast<unsigned>(tid) % buckets]; }
    watched* find_locked(int tid) noexcept;
    void unpin(watched& w) noexcept;

    os::lock lock_;
    // Guarded by lock_:
    watched* first_ = nullptr;  // Of the ring; a scan turns it.
    watched* bucket_[buckets] = {};
    std::uint64_t scan_ = 0;

    base::atomic<std::uint32_t> unpinned_;  // Counts; who removes waits for it to change.
};

}  // namespace ums::block
