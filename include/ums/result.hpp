// SPDX-License-Identifier: MIT
#pragma once

// ums/result.hpp: a value, or the error that came instead.
//
// Operations return a result where failure is part of ordinary life: a peer hangs up, a deadline
// passes.
//
//   auto n = ums::io::read(fd, buffer, sizeof buffer, ums::deadline_after(5s));
//   if (!n) return n.error();                 // a std::error_code
//   consume(buffer, *n);
//   ums::io::write(fd, text, size).value();   // or: throws std::system_error
//
// Errors: value() throws std::system_error with the code. operator* requires a value; without one
//         it ends the program with a message. Codes are of the system category and compare with
//         std::errc.
// Cost:   result<std::size_t> fits one word and result<void> an int. No result allocates.

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "ums/impl/exceptions.hpp"
#include "ums/impl/misuse.hpp"

namespace ums {

// A number from the kernel: a value from zero on, or -errno.
using io_number = long;

namespace impl {
[[noreturn]] inline void throw_error(int error) {
    UMS_THROW(std::system_error{error, std::system_category()});
}

// The error of an answer that is no result. It may be called, as a result's error() is.
struct answer_error : std::error_code {
    using std::error_code::error_code;
    answer_error() noexcept = default;
    answer_error(const std::error_code& code) noexcept : std::error_code{code} {}
    const std::error_code& operator()() const noexcept { return *this; }
};
}  // namespace impl

template <class T>
class [[nodiscard]] result {
public:
    using value_type = T;

    // A value; or an error number of the system, such as EAGAIN.
    result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)
        : held_{std::in_place_index<0>, std::move(value)} {}
    static result failure(int error) { return result{std::in_place_index<1>, error}; }

    [[nodiscard]] bool has_value() const noexcept { return held_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    // A code that is false if there is no error.
    [[nodiscard]] std::error_code error() const noexcept {
        return {has_value() ? 0 : std::get<1>(held_), std::system_category()};
    }

    // Return the value, or throw std::system_error.
    T& value() & { return check(), std::get<0>(held_); }
    const T& value() const& { return check(), std::get<0>(held_); }
    T&& value() && { return check(), std::get<0>(std::move(held_)); }

    // Requires: has_value(). Otherwise ends the program with a message.
    T& operator*() & noexcept { return need(), *std::get_if<0>(&held_); }
    const T& operator*() const& noexcept { return need(), *std::get_if<0>(&held_); }
    T&& operator*() && noexcept { return need(), std::move(*std::get_if<0>(&held_)); }
    T* operator->() noexcept { return &**this; }
    const T* operator->() const noexcept { return &**this; }

    T value_or(T otherwise) const& { return has_value() ? **this : std::move(otherwise); }

private:
    result(std::in_place_index_t<1> which, int error) : held_{which, error} {}
    void check() const {
        if (!has_value()) impl::throw_error(std::get<1>(held_));
    }
    void need() const noexcept {
        if (!has_value()) impl::misuse("the value of a result that holds an error");
    }

    std::variant<T, int> held_;
};

// Specialised to fit one word.
template <>
class [[nodiscard]] result<std::size_t> {
public:
    using value_type = std::size_t;

    result(std::size_t n) noexcept : number_{static_cast<io_number>(n)} {}
    static result failure(int error) noexcept { return from(-error); }
    // Takes what the kernel returned.
    static result from(io_number number) noexcept {
        result r{std::size_t{0}};
        r.number_ = number;
        return r;
    }

    [[nodiscard]] bool has_value() const noexcept { return number_ >= 0; }
    explicit operator bool() const noexcept { return has_value(); }
    [[nodiscard]] std::error_code error() const noexcept {
        return {has_value() ? 0 : static_cast<int>(-number_), std::system_category()};
    }
    std::size_t value() const {
        if (!has_value()) impl::throw_error(static_cast<int>(-number_));
        return static_cast<std::size_t>(number_);
    }
    std::size_t operator*() const noexcept {
        if (!has_value()) impl::misuse("the value of a result that holds an error");
        return static_cast<std::size_t>(number_);
    }
    [[nodiscard]] std::size_t value_or(std::size_t otherwise) const noexcept {
        return has_value() ? **this : otherwise;
    }
    // Returns the value, or -errno.
    [[nodiscard]] io_number number() const noexcept { return number_; }

private:
    io_number number_;
};

// Not nodiscard: the functions whose failure matters are.
template <>
class result<void> {
public:
    using value_type = void;

    result() noexcept = default;
    static result failure(int error) noexcept { return from(-error); }
    // Takes what the kernel returned; values from zero on mean success.
    static result from(io_number number) noexcept {
        result r;
        if (number < 0) r.error_ = static_cast<int>(-number);
        return r;
    }

    [[nodiscard]] bool has_value() const noexcept { return error_ == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    [[nodiscard]] std::error_code error() const noexcept {
        return {error_, std::system_category()};
    }
    // Throws std::system_error if the result holds an error.
    void value() const {
        if (error_ != 0) impl::throw_error(error_);
    }

private:
    int error_ = 0;
};

}  // namespace ums
