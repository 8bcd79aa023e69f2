// SPDX-License-Identifier: MIT
#pragma once

// ums/promise.hpp: the side of a future that provides the value. Same API as std::promise.
//
// The ..._at_fiber_exit forms store the value at once. They make the future ready when the calling
// fiber has ended and its fiber_local values are destroyed; on a plain thread, among the
// destructors of its thread_local objects. The ..._at_thread_exit forms are other names for them.
//
// Blocking:  never.
// Ordering:  what happens before the value is set is visible after the wait that sees it.
// Lifetime:  see ums/future.hpp. A promise that is destroyed without a value breaks: get() throws
//            broken_promise.
// Errors:    std::future_error: promise_already_satisfied, future_already_retrieved, no_state
//            (moved from). An exception of the value's constructor leaves the promise as it was. A
//            null exception_ptr ends the program with a message.
// Cost:      an allocation for each promise.

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "ums/future.hpp"
#include "ums/impl/misuse.hpp"

namespace ums {

template <class T>
class promise {
    static_assert(!std::is_array_v<T> && !std::is_function_v<T> && !std::is_rvalue_reference_v<T>);
    struct none {};
    // The parameters of set_value(). Nobody can call the forms that T has no use for.
    using object = std::conditional_t<std::is_object_v<T>, T, none>;
    using reference = std::conditional_t<std::is_reference_v<T>, T, none&>;

public:
    // Allocates the shared state, with `alloc` if given. Throws std::bad_alloc.
    promise() : state_{new impl::value_state<T>} {}
    template <class Alloc>
    promise(std::allocator_arg_t, const Alloc& alloc)
        : state_{impl::allocated_state<impl::value_state<T>, Alloc>::make(alloc)} {}

    promise(promise&&) noexcept = default;
    promise& operator=(promise&& other) noexcept {
        promise{std::move(other)}.swap(*this);
        return *this;
    }
    ~promise() {
        if (state_) state_->abandon();
    }

    void swap(promise& other) noexcept { std::swap(state_, other.state_); }
    friend void swap(promise& a, promise& b) noexcept { a.swap(b); }

    // Returns the future of this promise, once.
    [[nodiscard]] future<T> get_future() {
        state_.checked()->retrieve();
        return impl::future_access::make<T>(state_);
    }

    // Store the value or the exception, and make the future ready: they wake its waiters.
    void set_value() requires std::is_void_v<T> { set(now); }
    void set_value(reference value) requires std::is_reference_v<T> { set(now, value); }
    void set_value(const object& value) requires std::is_object_v<T> { set(now, value); }
    void set_value(object&& value) requires std::is_object_v<T> { set(now, std::move(value)); }
    void set_exception(std::exception_ptr error) { set_error(now, std::move(error)); }

    // Store the value or the exception now, and make the future ready when the caller ends.
    void set_value_at_fiber_exit() requires std::is_void_v<T> { set(at_exit); }
    void set_value_at_fiber_exit(reference value) requires std::is_reference_v<T> {
        set(at_exit, value);
    }
    void set_value_at_fiber_exit(const object& value) requires std::is_object_v<T> {
        set(at_exit, value);
    }
    void set_value_at_fiber_exit(object&& value) requires std::is_object_v<T> {
        set(at_exit, std::move(value));
    }
    void set_exception_at_fiber_exit(std::exception_ptr error) {
        set_error(at_exit, std::move(error));
    }

    void set_value_at_thread_exit() requires std::is_void_v<T> { set(at_exit); }
    void set_value_at_thread_exit(reference value) requires std::is_reference_v<T> {
        set(at_exit, value);
    }
    void set_value_at_thread_exit(const object& value) requires std::is_object_v<T> {
        set(at_exit, value);
    }
    void set_value_at_thread_exit(object&& value) requires std::is_object_v<T> {
        set(at_exit, std::move(value));
    }
    void set_exception_at_thread_exit(std::exception_ptr error) {
        set_error(at_exit, std::move(error));
    }

private:
    enum when : bool { now, at_exit };
    using state = impl::state_ptr<impl::value_state<T>>;

    static void finish(const state& kept, when w) noexcept {
        w == now ? kept->make_ready() : kept->make_ready_at_exit();
    }

    // These hold the state themselves: the waiter may destroy the promise as soon as the value is
    // there.
    template <class... Args>
    void set(when w, Args&&... args) {
        const state kept = state_.checked();
        kept->claim();
        struct undo {
            impl::value_state<T>* claimed;
            ~undo() {
                if (claimed != nullptr) claimed->unclaim();
            }
        } guard{kept.operator->()};
        kept->emplace(std::forward<Args>(args)...);
        guard.claimed = nullptr;
        finish(kept, w);
    }
    void set_error(when w, std::exception_ptr&& error) {
        if (!error) impl::misuse("set_exception() of no exception");
        const state kept = state_.checked();
        kept->claim();
        kept->set_error(std::move(error));
        finish(kept, w);
    }

    state state_;
};

}  // namespace ums

template <class T, class Alloc>
struct std::uses_allocator<ums::promise<T>, Alloc> : std::true_type {};
