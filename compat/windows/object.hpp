// SPDX-License-Identifier: MIT
#pragma once

// windows/object.hpp: what a handle stands for, and waiting for it.
//
// One lock, the dispatcher's, guards the state of every object, the handle table, the names and the
// lists of waiters. So a wait for any or all of several objects is one step. The cost does not
// matter here: what programs call often are critical sections and SRW locks, which have no handle.
//
// No wake-up is lost. A wait looks at the objects and, if it must wait, queues itself on each, in
// one section of the lock. A thread that changes an object calls object::changed() in the same
// section. That takes the object on behalf of every waiter that can continue, removes that waiter
// from all lists, and only then sets its word. So a waiter whose word is set has been served
// exactly once, and a waiter whose time is up finds out under the lock whether it was served.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/atomic.hpp"
#include "base/check.hpp"
#include "base/futex.hpp"
#include "windows/guard.hpp"

namespace ums::windows {

class thread;
struct waiter;

extern std::uint32_t dispatcher;  // A lock word (base/lock.hpp).

// A place in an object's list.
struct wait_place {
    thread* by = nullptr;
    wait_place* next = nullptr;
    wait_place* previous = nullptr;
    bool is_queued = false;
};

class object {
public:
    enum class kind : unsigned char { event, semaphore, mutex, thread };

    object(const object&) = delete;
    object& operator=(const object&) = delete;

    const kind what;

    // Guarded by the dispatcher's lock:
    // Whether thread `who` need not wait.
    [[nodiscard]] virtual bool is_ready(const thread& who) const noexcept = 0;
    // Takes what thread `who` waited for, which must be ready for it. True: its last owner
    // abandoned it.
    virtual bool take(thread& who) noexcept = 0;
    // Serves the waiters that can continue now, first come first served.
    void changed() noexcept;

    void queue(wait_place& place) noexcept;
    void unqueue(wait_place& place) noexcept;
    // The last reference is gone.
    virtual void vanish() noexcept {}

    void share() noexcept {
        UMS_DEBUG_CHECK(references_ != 0, "an object was shared that is being destroyed");
        ++references_;
    }
    // Drops a reference. Returns the object that the caller must delete, outside the lock, or null.
    [[nodiscard]] object* unshare() noexcept;

    bool has_name = false;

protected:
    explicit object(kind k) noexcept : what{k} {}  // Starts with one reference: the maker's.
    virtual ~object() = default;

private:
    friend void drop(object* o) noexcept;
    wait_place* first_ = nullptr;
    wait_place* last_ = nullptr;
    unsigned references_ = 1;
};

// Drops a reference; does nothing for null. Not under the lock.
void drop(object* o) noexcept;

// Owns one reference.
template <class T>
class ref {
public:
    ref() noexcept = default;
    explicit ref(T* owned) noexcept : to_{owned} {}
    ref(ref&& other) noexcept : to_{std::exchange(other.to_, nullptr)} {}
    ref& operator=(ref&& other) noexcept {
        std::swap(to_, other.to_);
        return *this;
    }
    ~ref() { drop(to_); }

    explicit operator bool() const noexcept { return to_ != nullptr; }
    T* operator->() const noexcept { return to_; }
    T& operator*() const noexcept { return *to_; }
    T* get() const noexcept { return to_; }
    T* release() noexcept { return std::exchange(to_, nullptr); }

private:
    T* to_ = nullptr;
};

inline constexpr unsigned timed_out = 0x102, abandoned = 0x80, failed = ~0u;

// A thread's wait. It is part of the thread's record, because a thread that is terminated while it
// waits leaves its stack as it is.
struct waiter {
    std::vector<ref<object>> objects;  // What it waits for, each with a reference.
    // Guarded by the dispatcher's lock. The lock also guards what other threads read of the rest,
    // which they read only during a wait.
    std::vector<wait_place> places;
    bool all = false;
    bool is_over = false;  // A worker was terminated: a wait that begins now ends at once.
    unsigned result = timed_out;
    std::atomic<std::uint32_t> is_served{0};

    // Waits for any, or all, of the objects (at most MAXIMUM_WAIT_OBJECTS), until `limit`. Returns
    // the index of the signalled object, or 0 for all; adds `abandoned` if one was abandoned. Or
    // returns `timed_out`, or `failed` if the thread is to end. Called by the thread itself.
    [[nodiscard]] unsigned wait(thread& self, compat::nanoseconds limit) noexcept;

    // Under the dispatcher's lock: takes what thread `who` waits for if it can continue now.
    // Returns the result, or `timed_out`.
    unsigned try_take(thread& who) noexcept;
    // Likewise under the lock: sets the result of a wait in progress.
    void serve(unsigned with) noexcept;
    void unqueue() noexcept;
};

// The deadline for a time-out in Windows' milliseconds.
inline compat::nanoseconds deadline_of(unsigned milliseconds) noexcept {
    return milliseconds == 0xFFFFFFFFu ? compat::never : compat::now() + milliseconds * 1'000'000L;
}

}  // namespace ums::windows
