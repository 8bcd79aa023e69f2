// SPDX-License-Identifier: MIT
#pragma once

// ums/packaged_task.hpp: a function whose outcome goes to a future. Same API as std::packaged_task.
//
// Blocking:  never, except as the function does.
// Lifetime:  see ums/future.hpp. A task that is destroyed without having been called breaks its
//            promise.
// Errors:    std::future_error: promise_already_satisfied (called again without reset()),
//            future_already_retrieved, no_state (empty, or moved from). An exception of the
//            function goes to the future. A plain thread that ends inside the function (cancelled,
//            or by pthread_exit()) breaks the promise.
// Cost:      an allocation for each task, and one for each reset().

#include <functional>
#include <type_traits>
#include <utility>

#include "ums/future.hpp"
#include "ums/impl/other_than.hpp"

namespace ums {

namespace impl {

template <class F, class Task, class R, class... Args>
concept task_function = other_than<F, Task> &&
    std::is_invocable_r_v<R, std::add_lvalue_reference_t<std::decay_t<F>>, Args...>;

template <class R, class... Args>
class task_state : public value_state<R> {
public:
    // Stores what the function returns or throws with these arguments. Requires: claimed.
    virtual void call(Args&&... args) = 0;
    // Makes another state for the same function, which moves there.
    virtual task_state* renew() = 0;
};

template <class F, class R, class... Args>
class function_state final : public task_state<R, Args...> {
public:
    template <class From>
    explicit function_state(std::in_place_t, From&& from) : f_(std::forward<From>(from)) {}

private:
    void call(Args&&... args) override {
        this->fill([&]() -> R {
            if constexpr (std::is_void_v<R>)
                std::invoke(f_, std::forward<Args>(args)...);
            else
                return std::invoke(f_, std::forward<Args>(args)...);
        });
    }
    task_state<R, Args...>* renew() override {
        return new function_state{std::in_place, std::move(f_)};
    }

    F f_;
};

}  // namespace impl

template <class Signature>
class packaged_task;

template <class R, class... Args>
class packaged_task<R(Args...)> {
public:
    packaged_task() noexcept = default;

    // Copies or moves the function into the task.
    template <impl::task_function<packaged_task, R, Args...> F>
    explicit packaged_task(F&& f)
        : state_{new impl::function_state<std::decay_t<F>, R, Args...>{std::in_place,
                                                                       std::forward<F>(f)}} {}

    packaged_task(packaged_task&&) noexcept = default;
    packaged_task& operator=(packaged_task&& other) noexcept {
        packaged_task{std::move(other)}.swap(*this);
        return *this;
    }
    ~packaged_task() {
        if (state_) state_->abandon();
    }

    void swap(packaged_task& other) noexcept { std::swap(state_, other.state_); }
    friend void swap(packaged_task& a, packaged_task& b) noexcept { a.swap(b); }

    // Whether the task has a function.
    [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(state_); }

    // Returns the future of the task, once for each function or reset().
    [[nodiscard]] future<R> get_future() {
        state_.checked()->retrieve();
        return impl::future_access::make<R>(impl::state_ptr<task>{state_});
    }

    // Calls the function and makes the future ready.
    void operator()(Args... args) { call(&task::make_ready, std::forward<Args>(args)...); }

    // Calls the function at once. The future becomes ready when the calling fiber, or plain thread,
    // has ended: see ums/promise.hpp.
    void make_ready_at_fiber_exit(Args... args) {
        call(&task::make_ready_at_exit, std::forward<Args>(args)...);
    }
    void make_ready_at_thread_exit(Args... args) {
        call(&task::make_ready_at_exit, std::forward<Args>(args)...);
    }

    // Makes the task callable once more, for a new future.
    void reset() {
        impl::state_ptr<task> fresh{state_.checked()->renew()};
        std::swap(state_, fresh);
        fresh->abandon();
    }

private:
    using task = impl::task_state<R, Args...>;

    using ending = void (task::*)() noexcept;

    // Holds the state itself: the waiter may destroy the task as soon as the outcome is there.
    void call(ending how, Args&&... args) {
        const impl::state_ptr<task> kept = state_.checked();
        kept->claim();
        struct finish {
            task& state;
            ending how;
            ~finish() { (state.*how)(); }
        } also_when_the_thread_ends{*kept.operator->(), how};
        kept->call(std::forward<Args>(args)...);
    }

    impl::state_ptr<task> state_;
};

// Deduces the signature from a function, or from a class with one operator(), whatever its
// qualifiers.
template <class R, class... Args>
packaged_task(R (*)(Args...)) -> packaged_task<R(Args...)>;

namespace impl {

template <class>
struct signature_of;
#define UMS_SIGNATURE_OF(qualifiers)                         \
    template <class R, class Object, class... Args>          \
    struct signature_of<R (Object::*)(Args...) qualifiers> { \
        using type = R(Args...);                             \
    };
#define UMS_SIGNATURES_OF(qualifiers)     \
    UMS_SIGNATURE_OF(qualifiers)          \
    UMS_SIGNATURE_OF(const qualifiers)    \
    UMS_SIGNATURE_OF(volatile qualifiers) \
    UMS_SIGNATURE_OF(const volatile qualifiers)
UMS_SIGNATURES_OF()
UMS_SIGNATURES_OF(&)
UMS_SIGNATURES_OF(noexcept)
UMS_SIGNATURES_OF(&noexcept)
#undef UMS_SIGNATURES_OF
#undef UMS_SIGNATURE_OF

}  // namespace impl

template <class F>
packaged_task(F) -> packaged_task<typename impl::signature_of<decltype(&F::operator())>::type>;

}  // namespace ums
