// SPDX-License-Identifier: MIT
#pragma once

// ums/future.hpp: a value that another fiber or kernel thread will provide. Same API as std's, with
// std's error types. This header includes promise, packaged_task and async, which have headers of
// their own.
//
// A future is for one reader, which takes the value; a shared_future is for any number of readers,
// who look at it.
//
// Blocking:  get() and the waits park the fiber, never its processor; a plain kernel thread waits
//            on a futex. A timed wait whose time has already passed yields, so a loop that polls
//            lets others run. The destructor of the last future of async() waits for its fiber.
// Fairness:  all waiters are woken at once, first come first.
// Ordering:  what happens before the value is set is visible after the wait that sees it.
// Lifetime:  promise and futures may be destroyed as soon as their own side has no use for them,
//            even while the set_value() that made the future ready is still returning.
// Errors:    std::future_error: no_state (not valid()), broken_promise (get(), if the promise went
//            away without a value). get() rethrows the exception that was set.
// Cost:      an allocation for each promise; waiting for a ready future costs one load.

#include <chrono>
#include <future>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/deadline.hpp"
#include "ums/impl/shared_state.hpp"

namespace ums {

using std::future_category;
using std::future_errc;
using std::future_error;
using std::future_status;

template <class T>
class shared_future;

namespace impl {

struct future_access;

// The members that future and shared_future have in common.
template <class T>
class future_base {
    static_assert(!std::is_array_v<T> && !std::is_function_v<T> && !std::is_rvalue_reference_v<T>);

public:
    [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(state_); }

    // Waits until the future is ready. Runs a deferred function.
    void wait() const { state_.checked()->wait(); }

    // Waits until the future is ready, or returns false once a stop is requested. If both happen at
    // once, ready wins. Runs a deferred function, without heeding the stop.
    [[nodiscard]] bool wait(const std::stop_token& stop) const {
        if (!state_.checked()->is_deferred()) return state_->wait_or_stop(stop);
        state_->wait();
        return true;
    }

    // Return ready, timeout, or deferred at once; they do not run a deferred function.
    template <class Rep, class Period>
    future_status wait_for(const std::chrono::duration<Rep, Period>& d) const {
        if (state_.checked()->is_deferred()) return future_status::deferred;
        return status(state_->wait_until(d > d.zero() ? deadline_after(d) : (deadline::min)()));
    }
    template <class Clock, class Duration>
    future_status wait_until(const std::chrono::time_point<Clock, Duration>& t) const {
        if (state_.checked()->is_deferred()) return future_status::deferred;
        return status(until(t, [this](deadline limit) { return state_->wait_until(limit); }));
    }

protected:
    using state = state_ptr<value_state<T>>;

    future_base() noexcept = default;
    explicit future_base(state from) noexcept : state_{std::move(from)} {}

    state take() {
        (void)state_.checked();
        return std::move(state_);
    }

    state state_;

private:
    static future_status status(bool is_ready) noexcept {
        return is_ready ? future_status::ready : future_status::timeout;
    }
};

}  // namespace impl

template <class T>
class [[nodiscard]] future : public impl::future_base<T> {
    using base = impl::future_base<T>;

public:
    future() noexcept = default;
    future(future&&) noexcept = default;
    future& operator=(future&&) noexcept = default;

    // Waits, then takes the value or throws the exception. Afterwards the future is not valid().
    T get() {
        const typename base::state last = this->take();
        last->wait();
        last->rethrow_moved();
        if constexpr (std::is_reference_v<T>)
            return last->value();
        else if constexpr (!std::is_void_v<T>)
            return std::move(last->value());
    }

    // Makes a shared_future of this future, which is not valid() afterwards.
    shared_future<T> share() noexcept;

private:
    friend struct impl::future_access;
    using base::base;
};

template <class T>
class shared_future : public impl::future_base<T> {
    using base = impl::future_base<T>;
    using result = std::conditional_t<std::is_object_v<T>, std::add_lvalue_reference_t<const T>, T>;

public:
    shared_future() noexcept = default;
    shared_future(const shared_future&) noexcept = default;
    shared_future(shared_future&&) noexcept = default;
    shared_future(future<T>&& from) noexcept : shared_future{from.share()} {}
    shared_future& operator=(const shared_future&) noexcept = default;
    shared_future& operator=(shared_future&&) noexcept = default;

    // Waits, then returns the value or throws the exception. The reference is valid while a
    // shared_future of the value exists.
    result get() const {
        this->state_.checked()->wait();
        this->state_->rethrow();
        if constexpr (!std::is_void_v<T>) return this->state_->value();
    }

private:
    friend class future<T>;
    using base::base;
};

template <class T>
shared_future<T> future<T>::share() noexcept {
    return shared_future<T>{std::move(this->state_)};
}

namespace impl {

// Lets the providers (promise, packaged_task, async) make futures.
struct future_access {
    template <class T>
    static future<T> make(state_ptr<value_state<T>> from) noexcept {
        return future<T>{std::move(from)};
    }
};

}  // namespace impl

}  // namespace ums

#include "ums/async.hpp"          // IWYU pragma: export
#include "ums/packaged_task.hpp"  // IWYU pragma: export
#include "ums/promise.hpp"        // IWYU pragma: export
