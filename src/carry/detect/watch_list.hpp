// SPDX-License-Identifier: MIT
#pragma once

// carry/detect/watch_list.hpp: the loads that a detector watches.
//
// An observer visits them without a lock. An observer whose thread is preempted for long, as a
// sentinel's may be, keeps no other observer waiting; and of the threads that remove a load, it
// delays only the one that removes the very load it looks at. It allocates nothing, because a
// thread that blocks inside the allocator must not stop its own detection.

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "carry/load.hpp"
#include "os/lock.hpp"

namespace ums::carry {

class watch_list {
public:
    // A place from which one thread at a time visits the loads.
    class observer {
    public:
        explicit observer(watch_list& list) noexcept;
        ~observer();
        observer(const observer&) = delete;
        observer& operator=(const observer&) = delete;

        // Calls f(load) for each load that is there from beginning to end, and perhaps for others,
        // until one call returns false.
        template <class F>
        void each(F f) noexcept {
            for (chunk* c = &list_.first_; c != nullptr; c = c->next.load(base::acquire)) {
                for (auto& place : c->places) {
                    // relaxed: pin() reads it again.
                    load* const w = place.load(base::relaxed);
                    if (w == nullptr || !pin(place, *w)) continue;
                    const bool goes_on = f(*w);
                    unpin();
                    if (!goes_on) return;
                }
            }
        }

    private:
        friend class watch_list;

        bool pin(const base::atomic<load*>& place, load& w) noexcept;
        void unpin() noexcept;

        watch_list& list_;
        base::atomic<load*> pinned_;
        observer* next_ = nullptr;  // Guarded by the list's lock.
    };

    watch_list() noexcept = default;
    ~watch_list();  // Requires: no load, no observer.
    watch_list(const watch_list&) = delete;
    watch_list& operator=(const watch_list&) = delete;

    // Throws std::bad_alloc.
    void add(load& w);
    // Returns when no observer looks at the load any more.
    void remove(load& w) noexcept;

private:
    struct chunk {
        base::atomic<load*> places[31];
        base::atomic<chunk*> next;
    };

    [[nodiscard]] bool is_pinned(const load& w) noexcept;

    os::lock lock_;                  // Held to add, to remove, and to change the observers.
    observer* observers_ = nullptr;  // Guarded by lock_.
    chunk first_;
    base::atomic<std::uint32_t> removers_;  // Those that wait, or are about to.
    // Changes when a pin was taken back that a remover may be waiting for.
    base::atomic<std::uint32_t> unpinned_;
};

}  // namespace ums::carry
