// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/outcome.hpp: what a fiber's function returned, or the exception that left it. It is
// kept until the fiber is joined.

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

template <class T>
class outcome {
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
        if (error_) std::rethrow_exception(error_);
        if constexpr (!std::is_void_v<T>) {
            // In the child of a fork() that another fiber made: it has not ended, nor will it.
            if (!value_)
                UMS_THROW(std::system_error{std::make_error_code(std::errc::no_such_process),
                                            "ums: the fiber was left behind by fork()"});
            if constexpr (std::is_reference_v<T>)
                return static_cast<T>(**value_);
            else
                return std::move(*value_);
        }
    }

private:
    struct nothing {};
    using kept = std::conditional_t<
        std::is_void_v<T>, nothing,
        std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;
    std::optional<kept> value_;
    std::exception_ptr error_;
};

}  // namespace ums::impl
