// SPDX-License-Identifier: MIT
#pragma once

// ums/value_fiber.hpp: a fiber whose join() returns the result of its function.
//
//   auto sum = ums::spawn(add, 1, 2);
//   int three = sum.join();
//
// Blocking: as ums::fiber: join() parks the calling fiber or blocks the calling plain thread;
//           spawn() and detach() never block.
// Ordering: everything the function did happens before join() returns.
// Lifetime: destroying a joinable handle, or assigning to one, calls std::terminate(). The value of
//           a detached fiber is dropped. What a returned reference refers to must outlive the
//           fiber, whose function and arguments end with it.
// Errors:   as ums::fiber; spawn() may also throw std::bad_alloc. join() rethrows an exception that
//           left the function.
// Cost:     a fiber, and one allocation that holds the value or the exception.

#include <memory>
#include <type_traits>
#include <utility>

#include "ums/fiber.hpp"
#include "ums/impl/other_than.hpp"
#include "ums/impl/outcome.hpp"

namespace ums {

template <class T>
class [[nodiscard]] value_fiber {
public:
    using id = fiber_id;

    value_fiber() noexcept = default;

    // As those of ums::fiber.
    [[nodiscard]] bool joinable() const noexcept { return fiber_.joinable(); }
    [[nodiscard]] id get_id() const noexcept { return fiber_.get_id(); }
    [[nodiscard]] fiber_ref ref() const noexcept { return fiber_.ref(); }

    // Waits for the end of the function, then returns what it returned or rethrows what it threw.
    T join() {
        fiber_.join();
        const auto result = std::move(outcome_);
        return result->take();
    }
    // Lets the fiber run on alone and drops its outcome.
    void detach() {
        fiber_.detach();
        outcome_.reset();
    }

private:
    // Not a lambda: `ums ps` shows where a fiber starts by the name of this type, and the C++
    // runtime cannot demangle that of a generic lambda in here.
    struct call {
        std::shared_ptr<impl::outcome<T>> out;
        template <class F, class... Args>
        void operator()(F&& f, Args&&... args) {
            out->call(std::forward<F>(f), std::forward<Args>(args)...);
        }
    };

    template <class F, class... Args>
    friend auto spawn(const fiber_options& options, F&& f, Args&&... args);

    std::shared_ptr<impl::outcome<T>> outcome_;
    fiber fiber_;
};

namespace impl {

// The return type of the function; void if it cannot be called, which is reported elsewhere.
template <bool, class F, class... Args>
struct returned_by : std::type_identity<void> {};
template <class F, class... Args>
struct returned_by<true, F, Args...> : std::invoke_result<std::decay_t<F>, std::decay_t<Args>...> {
};

}  // namespace impl

// Runs f(args...) on a new fiber, with decayed copies that the caller makes.
template <class F, class... Args>
auto spawn(const fiber_options& options, F&& f, Args&&... args) {
    static_assert(impl::is_callable<F, Args...>,
                  "a fiber's function must be callable with copies of its arguments, as rvalues");
    using result = typename impl::returned_by<impl::is_callable<F, Args...>, F, Args...>::type;
    static_assert(impl::is_returnable<result>,
                  "a fiber's function must not return an rvalue reference: return a value");
    using handle = value_fiber<result>;
    handle made;
    if constexpr (impl::is_callable<F, Args...> && impl::is_returnable<result>) {
        made.outcome_ = std::make_shared<impl::outcome<result>>();
        made.fiber_ = fiber{options, typename handle::call{made.outcome_}, std::forward<F>(f),
                            std::forward<Args>(args)...};
    }
    return made;
}

// The same without options.
template <impl::other_than<fiber_options> F, class... Args>
auto spawn(F&& f, Args&&... args) {
    return spawn(fiber_options{}, std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace ums
