// SPDX-License-Identifier: MIT
#include "windows/object.hpp"

#include "os/futex.hpp"
#include "windows/names.hpp"
#include "windows/thread.hpp"

namespace ums::windows {

constinit plain_lock dispatcher;

// A wait that is under way. On the stack of who waits.
struct waiter {
    thread& who;
    object* const* objects;
    wait_place* places;
    std::size_t count;
    bool all;
    unsigned result = timed_out;
    base::atomic<std::uint32_t> is_served{0};

    // Under the lock: takes what it waits for if it can go on now. The result, or `timed_out`.
    unsigned try_take() noexcept {
        if (all) {
            for (std::size_t i = 0; i < count; ++i)
                if (!objects[i]->is_ready(who)) return timed_out;
            unsigned was_abandoned = 0;
            for (std::size_t i = 0; i < count; ++i)
                if (objects[i]->take(who)) was_abandoned = abandoned;
            return was_abandoned;
        }
        for (std::size_t i = 0; i < count; ++i)
            if (objects[i]->is_ready(who))
                return static_cast<unsigned>(i) + (objects[i]->take(who) ? abandoned : 0);
        return timed_out;
    }

    void unqueue() noexcept {
        for (std::size_t i = 0; i < count; ++i) objects[i]->unqueue(places[i]);
    }
};

void object::queue(wait_place& place) noexcept {
    place.is_queued = true;
    place.previous = last_;
    (last_ != nullptr ? last_->next : first_) = &place;
    last_ = &place;
}

void object::unqueue(wait_place& place) noexcept {
    if (!place.is_queued) return;
    place.is_queued = false;
    (place.previous != nullptr ? place.previous->next : first_) = place.next;
    (place.next != nullptr ? place.next->previous : last_) = place.previous;
}

void object::changed() noexcept {
    for (wait_place* at = first_; at != nullptr;) {
        waiter& w = *at->by;
        wait_place* const next = at->next;  // Another's: a wait queues once on an object.
        at = next;
        const unsigned result = w.try_take();
        if (result == timed_out) continue;
        w.result = result;
        w.unqueue();
        const void* const word = w.is_served.address();
        // sync(windows.wait): publishes the result. The waiter may be gone after this.
        w.is_served.store(1, base::release);
        os::futex_wake(word);
    }
}

object* object::unshare() noexcept {
    if (--references_ != 0) return nullptr;
    if (has_name) forget_name(*this);
    vanish();
    return this;
}

void drop(object* o) noexcept {
    if (o == nullptr) return;
    const uninterrupted section;
    object* dead = nullptr;
    {
        const guard hold{dispatcher};
        dead = o->unshare();
    }
    delete dead;
}

unsigned wait_for(object* const* objects, std::size_t count, bool all,
                  os::nanoseconds limit) noexcept {
    wait_place places[64];
    waiter w{thread::current(), objects, places, count, all};
    {
        const guard hold{dispatcher};
        w.result = w.try_take();
        if (w.result != timed_out || limit <= 0) return w.result;
        for (std::size_t i = 0; i < count; ++i) {
            bool is_again = false;  // A second mention of an object is never reached.
            for (std::size_t k = 0; k < i; ++k) is_again |= objects[k] == objects[i];
            if (is_again) continue;
            places[i].by = &w;
            objects[i]->queue(places[i]);
        }
    }
    {
        const blocking wait;
        // sync(windows.wait): sees the result, and what was done before the object was signalled.
        while (w.is_served.load(base::acquire) == 0)
            if (!os::futex_wait(w.is_served, 0, limit)) break;
    }
    const guard hold{dispatcher};
    // relaxed: under the lock.
    if (w.is_served.load(base::relaxed) == 0) w.unqueue();
    return w.result;
}

}  // namespace ums::windows
