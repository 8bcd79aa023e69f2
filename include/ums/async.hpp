// SPDX-License-Identifier: MIT
#pragma once

// ums/async.hpp: runs a function on a fiber of its own and gives a future of its result. Same API
// as std::async.
//
//   auto sum = ums::async(add, 1, 2);
//   int three = sum.get();
//
// std::launch::async runs the function on a new fiber at once. std::launch::deferred runs it in the
// first wait() or get(), on the fiber or thread that calls it. With both, which is the default, the
// function gets a new fiber, or is deferred if there is no stack for one.
//
// Blocking:  async() never blocks. The destructor of the last future waits for the end of the fiber
//            that runs the function; it parks a fiber and blocks a plain thread.
// Ordering:  when the future is ready, the fiber's fiber_local values have been destroyed.
// Errors:    async() throws std::system_error as the constructor of ums::fiber does, and
//            std::bad_alloc. An exception of the function goes to the future. A plain thread that
//            ends inside a deferred function (cancelled, or by pthread_exit()) breaks the promise.
// Cost:      a fiber and an allocation.

#include <functional>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ums/fiber.hpp"
#include "ums/future.hpp"
#include "ums/impl/exceptions.hpp"
#include "ums/impl/other_than.hpp"

namespace ums {

namespace impl {

template <class R, class F, class... Args>
class async_state final : public value_state<R> {
public:
    template <class... A>
    explicit async_state(std::in_place_t, A&&... a) {
        call_.emplace(std::forward<A>(a)...);
    }

    void start(const fiber_options& options) {
        this->join_when_dropped();
        runner_ = fiber{options, [this] {
                            this->make_ready_at_exit();  // Registered first, so it runs last.
                            run();
                        }};
    }
    void start_deferred() noexcept { this->defer(); }

private:
    ~async_state() override {
        if (runner_.joinable()) runner_.join();
    }

    void run() {
        this->fill([this]() -> R {
            return std::apply(
                [](F& f, Args&... args) -> R {
                    return std::invoke(std::move(f), std::move(args)...);
                },
                *call_);
        });
        call_.reset();
    }
    void run_deferred() override { run(); }

    std::optional<std::tuple<F, Args...>> call_;
    fiber runner_;
};

template <class F, class... Args>
auto async(std::launch policy, const fiber_options& options, F&& f, Args&&... args) {
    static_assert(std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>,
                  "async()'s function must be callable with copies of its arguments, as rvalues");
    using result = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
    using state = async_state<result, std::decay_t<F>, std::decay_t<Args>...>;
    state_ptr<state> made{
        new state{std::in_place, std::forward<F>(f), std::forward<Args>(args)...}};
    const bool may_defer = (policy & std::launch::deferred) == std::launch::deferred;
    if ((policy & std::launch::async) != std::launch::async) {
        made->start_deferred();
    } else {
        UMS_TRY { made->start(options); }
        UMS_CATCH(std::system_error, e) {
            if (!may_defer || e.code() != std::errc::resource_unavailable_try_again) UMS_RETHROW;
            made->start_deferred();
        }
    }
    return future_access::make<result>(std::move(made));
}

}  // namespace impl

// Calls f(args...) with decayed copies, as `policy` says.
template <class F, class... Args>
[[nodiscard]] future<std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>> async(
    std::launch policy, F&& f, Args&&... args) {
    return impl::async(policy, {}, std::forward<F>(f), std::forward<Args>(args)...);
}

// The same with both policies: a new fiber, or deferred if there is no stack for one.
template <impl::other_than<std::launch, fiber_options> F, class... Args>
[[nodiscard]] future<std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>> async(
    F&& f, Args&&... args) {
    return impl::async(std::launch::async | std::launch::deferred, {}, std::forward<F>(f),
                       std::forward<Args>(args)...);
}

// The same on a new fiber made with `options`, never deferred.
template <class F, class... Args>
[[nodiscard]] future<std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>> async(
    const fiber_options& options, F&& f, Args&&... args) {
    return impl::async(std::launch::async, options, std::forward<F>(f),
                       std::forward<Args>(args)...);
}

}  // namespace ums
