// SPDX-License-Identifier: MIT
#include "windows/object.hpp"

#include "base/check.hpp"
#include "base/futex.hpp"
#include "windows/names.hpp"
#include "windows/thread.hpp"

namespace ums::windows {

constinit std::uint32_t dispatcher = 0;

unsigned waiter::try_take(thread& who) noexcept {
    if (all) {
        for (const auto& one : objects)
            if (!one->is_ready(who)) return timed_out;
        unsigned was_abandoned = 0;
        for (const auto& one : objects)
            if (one->take(who)) was_abandoned = abandoned;
        return was_abandoned;
    }
    for (std::size_t i = 0; i < objects.size(); ++i)
        if (objects[i]->is_ready(who))
            return static_cast<unsigned>(i) + (objects[i]->take(who) ? abandoned : 0);
    return timed_out;
}

void waiter::serve(unsigned with) noexcept {
    result = with;
    unqueue();
    const void* const word = &is_served;
    // sync(windows.wait): publishes the result. The thread may be gone after this.
    is_served.store(1, compat::release);
    compat::futex_wake(word);
}

void waiter::unqueue() noexcept {
    UMS_DEBUG_CHECK(places.size() <= objects.size(), "a wait forgot objects that it is queued on");
    for (std::size_t i = 0; i < places.size(); ++i) objects[i]->unqueue(places[i]);
}

void object::queue(wait_place& place) noexcept {
    UMS_DEBUG_CHECK(!place.is_queued && place.by != nullptr,
                    "a wait was queued twice, or nobody's");
    place.is_queued = true;
    place.previous = last_;
    (last_ != nullptr ? last_->next : first_) = &place;
    last_ = &place;
}

void object::unqueue(wait_place& place) noexcept {
    if (!place.is_queued) return;
    UMS_DEBUG_CHECK((place.previous != nullptr ? place.previous->next : first_) == &place &&
                        (place.next != nullptr ? place.next->previous : last_) == &place,
                    "the list of an object's waiters is broken");
    place.is_queued = false;
    (place.previous != nullptr ? place.previous->next : first_) = place.next;
    (place.next != nullptr ? place.next->previous : last_) = place.previous;
}

void object::changed() noexcept {
    for (wait_place* at = first_; at != nullptr;) {
        thread& who = *at->by;
        waiter& w = who.wait;
        at = at->next;  // Another thread's place: a wait queues only once on an object.
        const unsigned result = w.try_take(who);
        if (result == timed_out) continue;
        // relaxed: written under the lock.
        UMS_DEBUG_CHECK(w.is_served.load(compat::relaxed) == 0, "a wait was served twice");
        w.serve(result);
    }
}

object* object::unshare() noexcept {
    UMS_DEBUG_CHECK(references_ != 0, "an object was dropped more often than shared");
    if (--references_ != 0) return nullptr;
    UMS_DEBUG_CHECK(first_ == nullptr, "an object is destroyed that a thread waits for");
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

unsigned waiter::wait(thread& self, compat::nanoseconds limit) noexcept {
    const std::size_t count = objects.size();
    {
        const guard hold{dispatcher};
        UMS_DEBUG_CHECK(count != 0 && count < abandoned,
                        "a wait's result would mean another object");
        UMS_DEBUG_CHECK(places.empty(), "a thread waits that is waiting already");
        result = try_take(self);
        if (result != timed_out || limit <= 0) return result;
        // relaxed: written under the lock.
        is_served.store(0, compat::relaxed);
        places.assign(count, {});
        for (std::size_t i = 0; i < count; ++i) {
            bool is_again = false;  // A second mention of an object is never reached.
            for (std::size_t k = 0; k < i; ++k) is_again |= objects[k].get() == objects[i].get();
            if (is_again) continue;
            places[i].by = &self;
            objects[i]->queue(places[i]);
        }
        if (is_over) serve(failed);
    }
    {
        const blocking region;
        // sync(windows.wait): sees the result, and what was done before the object was signalled.
        while (is_served.load(compat::acquire) == 0) {
            if (!compat::futex_wait(&is_served, 0, limit)) break;
            obey_late_signals();
        }
    }
    const guard hold{dispatcher};
    // relaxed: read under the lock.
    if (is_served.load(compat::relaxed) == 0) unqueue();
    places.clear();
    return result;
}

}  // namespace ums::windows
