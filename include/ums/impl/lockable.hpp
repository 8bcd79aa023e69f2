// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/lockable.hpp: the members that the mutexes have in common. lockable holds all data, so
// its derived types have standard layout.
//
// `Calls` has static functions over State: those of mutex_calls and, for shared_lockable, also
// those of shared_mutex_calls.

#include <chrono>
#include <stop_token>

#include "ums/deadline.hpp"

namespace ums::impl {

template <class State, class Calls>
class lockable {
public:
    lockable(const lockable&) = delete;
    lockable& operator=(const lockable&) = delete;

    void lock() { Calls::lock(state_); }
    [[nodiscard]] bool try_lock() noexcept { return Calls::try_lock(state_); }
    void unlock() noexcept { Calls::unlock(state_); }

    // Locks it, or returns false once a stop is requested. If both happen at once, the lock wins.
    [[nodiscard]] bool lock(const std::stop_token& stop) {
        return Calls::lock_or_stop(state_, (deadline::max)(), stop);
    }

protected:
    constexpr lockable() noexcept = default;
    ~lockable() = default;

    using calls = Calls;
    State state_;
};

template <class State, class Calls>
class shared_lockable : public lockable<State, Calls> {
public:
    void lock_shared() { Calls::lock_shared(this->state_); }
    [[nodiscard]] bool try_lock_shared() noexcept { return Calls::try_lock_shared(this->state_); }
    void unlock_shared() noexcept { Calls::unlock_shared(this->state_); }

    // As lock(stop).
    [[nodiscard]] bool lock_shared(const std::stop_token& stop) {
        return Calls::lock_shared_or_stop(this->state_, (deadline::max)(), stop);
    }

protected:
    constexpr shared_lockable() noexcept = default;
    ~shared_lockable() = default;
};

// Adds the timed forms to a lockable. They return false once the time has passed, and try at least
// once.
template <class Base>
class timed : public Base {
public:
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::lock_until(this->state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) {
        return until(t, [this](deadline limit) { return calls::lock_until(this->state_, limit); });
    }

protected:
    constexpr timed() noexcept = default;
    ~timed() = default;

    using typename Base::calls;
};

// The same for a shared_lockable.
template <class Base>
class shared_timed : public timed<Base> {
public:
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::lock_shared_until(this->state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& t) {
        return until(
            t, [this](deadline limit) { return calls::lock_shared_until(this->state_, limit); });
    }

protected:
    constexpr shared_timed() noexcept = default;
    ~shared_timed() = default;

    using typename timed<Base>::calls;
};

}  // namespace ums::impl
