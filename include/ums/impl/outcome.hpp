// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/outcome.hpp: what a function returned, or the exception that left it.
//
// It is kept until somebody takes it: the joiner of the fiber that ran the function. The end of
// that fiber happens before.

#include <cxxabi.h>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ums/impl/exceptions.hpp"
#include "ums/impl/spawn.hpp"

namespace ums::impl {

// What an rvalue reference refers to has mostly ended with the fiber.
template <class T>
inline constexpr bool is_returnable = !std::is_rvalue_reference_v<T>;

// In the child of a fork() that another fiber made: the fiber has not ended, nor will it.
[[noreturn]] inline void throw_left_behind() {
    UMS_THROW(std::system_error{std::make_error_code(std::errc::no_such_process),
                                "ums: the fiber was left behind by fork()"});
}

// `is_small`: it is to lie on a fiber's stack, so a value that is large, or aligned to more than a
// cache line, goes to the heap. Where there is no memory, bad_alloc is the outcome.
template <class T, bool is_small = false>
class outcome {
    struct nothing {};
    using stored = std::conditional_t<
        std::is_void_v<T>, nothing,
        std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;
    static constexpr bool on_heap =
        is_small && (sizeof(stored) > most_kept_bytes - 2 * most_kept_alignment ||
                     alignof(stored) > most_kept_alignment);

public:
    // Calls f(args...) and keeps what comes of it. Not noexcept: pthread_exit() unwinds to the
    // runtime, which says what to do instead.
    template <class F, class... Args>
    void call(F&& f, Args&&... args) {
        UMS_TRY {
            if constexpr (std::is_void_v<T>) {
                impl::invoke(std::forward<F>(f), std::forward<Args>(args)...);
            } else if constexpr (std::is_reference_v<T>) {
                T to = impl::invoke(std::forward<F>(f), std::forward<Args>(args)...);
                value_ = std::addressof(to);
            } else if constexpr (on_heap) {
                value_.reset(new T(impl::invoke(std::forward<F>(f), std::forward<Args>(args)...)));
            } else {
                value_.emplace(impl::invoke(std::forward<F>(f), std::forward<Args>(args)...));
            }
        }
        UMS_CATCH_FORCED_UNWIND()
        UMS_CATCH_ALL { error_ = std::current_exception(); }
    }

    // Returns the value or rethrows the exception. Requires: the fiber has ended, and this is the
    // first time.
    T take() {
        rethrow();
        if constexpr (!std::is_void_v<T>) {
            if constexpr (std::is_reference_v<T>)
                return static_cast<T>(**value_);
            else
                return std::move(*value_);
        }
    }

    // The first half of take().
    void rethrow() {
        if (error_) std::rethrow_exception(std::move(error_));
    }

private:
    std::conditional_t<on_heap, std::unique_ptr<stored>, std::optional<stored>> value_;
    std::exception_ptr error_;
};

}  // namespace ums::impl
