// SPDX-License-Identifier: MIT
#pragma once

// ums/channel.hpp: carries values from senders to receivers.
//
//   ums::channel<T> c;                  unbuffered: a send and a receive meet
//   ums::channel<T> c{100};             buffered: holds up to 100 values
//   ums::channel<T> c{ums::unbounded};  a send never waits
//
// Any number of fibers and plain kernel threads may send and receive at once. close() says that
// nothing more will come: receivers get the values that are still in the channel and then the end;
// senders are refused and keep their values. select.hpp waits for several channels.
//
//   for (T& value : c) ...              receives until the end
//
//   c.send_all(values);                 several values, in one lock section each time there is room
//   c.receive_some(into, 100);          the values that are there, at least one, at most 100
//
// Blocking:  send() and receive() park the fiber, never its processor; a plain kernel thread waits
//            on a futex. The try_ forms, close() and the observers never block. Not from a signal
//            handler.
// Fairness:  values come out in the order they went in. Receivers are served first come, first
//            served, and so are senders; nobody overtakes a waiter.
// Ordering:  what happens before a send is visible after the receive of its value, and what happens
//            before a close() is visible after the receive that saw the end. Unbuffered: what
//            happens before the receive is also visible after the send. With capacity n: what
//            happens before the receive of a value is visible after the send of the nth value after
//            it.
// Lifetime:  may be destroyed as soon as the last operation that waited has returned, even while
//            the operation that woke it is still returning. Nobody may wait in the channel then.
//            The destructor destroys the values that are left.
// Errors:    an exception of T's move leaves the operation in which it happened, and that operation
//            has not taken place. The value, in whatever state the move left it, is still with its
//            sender or in the channel; it is never doubled. If a receiver fails to move a buffered
//            sender's value into the channel, that sender tries again itself. An impossible
//            capacity throws std::length_error; lack of memory throws std::bad_alloc. T's move
//            constructor and destructor run under the channel's lock: they must not block and must
//            not use the channel. While a slow one runs, other users of the channel wait in the
//            kernel.
// Cost:      one read-modify-write and one move of T for each operation; a waiting partner gets the
//            value directly. An operation that has to wait costs a switch more, and two
//            read-modify-writes if it is not timed. send_all() and receive_some() pay that once for
//            all values for which there is room, or which are there. After its construction only
//            an unbounded channel allocates: a block for each 4 KiB. A T of at most 256 bytes that
//            moves by copying needs no read-modify-write while all waits (unbounded: all values)
//            are of one processor; the first user from elsewhere then pays a system call, once.

#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/impl/channel.hpp"
#include "ums/impl/exceptions.hpp"

namespace ums {

inline constexpr std::size_t unbounded = ~std::size_t{0};

// A received value, or why there is none: a std::optional<T> with a status. Some T, such as bool or
// std::any, can be made from such an object itself. Do not make another std::optional<T> of such a
// T from it: the result would always have a value. static_cast<std::optional<T>&&>(it) gives the
// plain optional.
template <class T>
class received : public std::optional<T> {
public:
    // Why there is a value, or none: ok, or what the receiving function lists.
    [[nodiscard]] channel_status status() const noexcept { return status_; }

private:
    template <class>
    friend class channel;
    channel_status status_ = channel_status::empty;
};

// How many values went through, and why no more did.
struct batch {
    std::size_t count = 0;
    channel_status status = channel_status::ok;

    // As in the single forms: true if all went as asked.
    explicit operator bool() const noexcept { return status == channel_status::ok; }
};

template <class T>
class channel {
    static_assert(std::is_object_v<T> && std::is_move_constructible_v<T> &&
                  std::is_destructible_v<T>);

public:
    using value_type = T;
    class iterator;

    // Requires: a capacity whose blocks fit into memory (std::length_error, std::bad_alloc).
    explicit channel(std::size_t capacity = 0) {
        calls::open(state_, impl::element_type_of<T>, capacity);
    }
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() { calls::destroy(state_); }

    // Waits for room. Returns ok or closed. Moves from the value only if it was sent.
    [[nodiscard]] channel_status send(T&& value) {
        return calls::send(state_, std::addressof(value));
    }
    [[nodiscard]] channel_status send(const T& value) requires std::is_copy_constructible_v<T> {
        T copy(value);
        return calls::send(state_, std::addressof(copy));
    }

    // Returns ok, closed or stopped. If it can send when a stop is requested, it sends.
    [[nodiscard]] channel_status send(T&& value, const std::stop_token& stop) {
        return calls::send_until(state_, std::addressof(value), (deadline::max)(), &stop);
    }
    [[nodiscard]] channel_status send(
        const T& value, const std::stop_token& stop) requires std::is_copy_constructible_v<T> {
        T copy(value);
        return calls::send_until(state_, std::addressof(copy), (deadline::max)(), &stop);
    }

    // Does not wait. Returns ok, closed or full.
    [[nodiscard]] channel_status try_send(T&& value) {
        return calls::try_send(state_, std::addressof(value));
    }
    [[nodiscard]] channel_status try_send(const T& value) requires std::is_copy_constructible_v<T> {
        T copy(value);
        return calls::try_send(state_, std::addressof(copy));
    }

    // Returns ok, closed, deadline_passed or (with a token) stopped. Tries at least once.
    template <class U, class Rep, class Period>
    requires std::is_same_v<std::remove_cvref_t<U>, T>
    [[nodiscard]] channel_status send_for(U&& value, const std::chrono::duration<Rep, Period>& d,
                                          const std::stop_token& stop = {}) {
        return send_until(std::forward<U>(value), deadline_after(d), stop);
    }
    template <class U, class Clock, class Duration>
    requires std::is_same_v<std::remove_cvref_t<U>, T>
    [[nodiscard]] channel_status send_until(U&& value,
                                            const std::chrono::time_point<Clock, Duration>& t,
                                            const std::stop_token& stop = {}) {
        if constexpr (std::is_same_v<U, T>) {
            channel_status status{};
            impl::until(t, [&](deadline limit) {
                status = calls::send_until(state_, std::addressof(value), limit, &stop);
                return status != channel_status::deadline_passed;
            });
            return status;
        } else {
            return send_until(T(value), t, stop);
        }
    }

    // Waits for the next value. Returns nothing once the channel is closed and drained.
    [[nodiscard]] std::optional<T> receive() {
        std::optional<T> value;
        calls::receive(state_, &value);
        return value;  // Not moved.
    }
    [[nodiscard]] std::optional<T> receive() requires impl::moves_as_bytes<T> {
        impl::raw_value<T> raw;
        if (calls::receive(state_, raw.place()) != channel_status::ok) return std::nullopt;
        return std::optional<T>{raw.take()};
    }

    // Its status() is ok, closed or stopped. If a value and a stop come at once, the value wins.
    [[nodiscard]] received<T> receive(const std::stop_token& stop) {
        return receive_until((deadline::max)(), stop);
    }

    // Does not wait. Its status() is ok, closed or empty.
    [[nodiscard]] received<T> try_receive() {
        received<T> value;
        value.status_ =
            receive_as(value, [&](void* into) { return calls::try_receive(state_, into); });
        return value;
    }

    // Its status() is ok, closed, deadline_passed or (with a token) stopped. Tries at least once.
    template <class Rep, class Period>
    [[nodiscard]] received<T> receive_for(const std::chrono::duration<Rep, Period>& d,
                                          const std::stop_token& stop = {}) {
        return receive_until(deadline_after(d), stop);
    }
    template <class Clock, class Duration>
    [[nodiscard]] received<T> receive_until(const std::chrono::time_point<Clock, Duration>& t,
                                            const std::stop_token& stop = {}) {
        received<T> value;
        impl::until(t, [&](deadline limit) {
            value.status_ = receive_as(value, [&](void* into) {
                return calls::receive_until(state_, into, limit, &stop);
            });
            return value.status_ != channel_status::deadline_passed;
        });
        return value;
    }

    // Moves all of `values` in, in their order; values of other senders may come in between.
    // Returns ok, or closed, stopped or deadline_passed; then the first `count` values were sent.
    // If a move throws, the number of values sent is not known.
    batch send_all(std::span<T> values, const std::stop_token& stop = {}) {
        return send_all_until(values, (deadline::max)(), stop);
    }
    batch send_all_until(std::span<T> values, deadline limit, const std::stop_token& stop = {}) {
        batch result;
        const impl::channel_batch all{
            [](void* first, std::size_t i) -> void* { return static_cast<T*>(first) + i; },
            values.data(), values.size(),
            impl::moves_as_bytes<T> ? reinterpret_cast<std::byte*>(values.data()) : nullptr};
        result.status = calls::send_all(state_, all, result.count, limit, &stop);
        return result;
    }

    // Waits for a value, then takes what else is there, and appends it all to `into`: at most
    // `most` values. Returns ok, or closed (the end), stopped or deadline_passed with no value. If
    // a move in the channel throws, `into` has the values received before. A value whose move into
    // `into` throws is lost, with those behind it.
    template <class Container>
    batch receive_some(Container& into, std::size_t most, const std::stop_token& stop = {}) {
        return receive_some_until(into, most, (deadline::max)(), stop);
    }
    template <class Container>
    batch receive_some_until(Container& into, std::size_t most, deadline limit,
                             const std::stop_token& stop = {}) {
        if constexpr (impl::moves_as_bytes<T>)
            return receive_bytes(into, most, limit, stop);
        else
            return receive_objects(into, most, limit, stop);
    }

    // Wakes all waiters. Closing again does nothing.
    void close() noexcept { calls::close(state_); }

    // Once true it stays true; false may be out of date at once.
    [[nodiscard]] bool is_closed() const noexcept { return calls::is_closed(state_); }
    // How many values are in the channel; values of waiting senders are not counted.
    [[nodiscard]] std::size_t size() const noexcept { return calls::size(state_); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    // The capacity given at the start; 0: unbuffered.
    [[nodiscard]] std::size_t capacity() const noexcept { return state_.capacity; }

    // begin() and ++ receive. Several loops over one channel share the values.
    [[nodiscard]] iterator begin() { return iterator{*this}; }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
    using calls = impl::channel_calls;
    friend struct channel_access;

    template <class Container>
    batch receive_bytes(Container& into, std::size_t most, deadline limit,
                        const std::stop_token& stop) {
        constexpr std::size_t piece = sizeof(T) < 1024 ? 1024 / sizeof(T) : 1;
        alignas(T) std::byte values[piece * sizeof(T)];
        batch result;
        while (result.count < most) {
            const std::size_t missing = most - result.count;
            std::size_t got = 0;
            calls::receive_bytes(
                state_, {nullptr, nullptr, missing < piece ? missing : piece, values}, got);
            T* const first = std::launder(reinterpret_cast<T*>(values));
            into.insert(into.end(), std::make_move_iterator(first),
                        std::make_move_iterator(first + got));
            result.count += got;
            if (got != 0) continue;
            if (result.count != 0) break;
            received<T> one = receive_until(limit, stop);
            if (!one) return {0, one.status()};
            into.push_back(std::move(*one));
            result.count = 1;
        }
        return result;
    }

    template <class Container>
    batch receive_objects(Container& into, std::size_t most, deadline limit,
                          const std::stop_token& stop) {
        constexpr std::size_t piece = 16;
        batch result;
        while (result.count < most) {
            const std::size_t missing = most - result.count;
            std::optional<T> values[piece];
            const impl::channel_batch all{[](void* first, std::size_t i) -> void* {
                                              return static_cast<std::optional<T>*>(first) + i;
                                          },
                                          values, missing < piece ? missing : piece};
            std::size_t got = 0;
            channel_status status{};
            const auto append = [&] {
                for (std::size_t i = 0; i < got; ++i) into.push_back(std::move(*values[i]));
            };
            UMS_TRY {
                status = result.count == 0 ? calls::receive_some(state_, all, got, limit, &stop)
                                           : calls::receive_ready(state_, all, got);
            }
            UMS_CATCH_ALL {
                append();
                UMS_RETHROW;
            }
            append();
            if (got == 0) return {result.count, result.count == 0 ? status : channel_status::ok};
            result.count += got;
        }
        return result;
    }

    // Receives into `value`, which is empty, by receive_into(). Returns that status.
    template <class F>
    static channel_status receive_as(std::optional<T>& value, F receive_into) {
        if constexpr (impl::moves_as_bytes<T>) {
            impl::raw_value<T> raw;
            const channel_status status = receive_into(raw.place());
            if (status == channel_status::ok) value.emplace(raw.take());
            return status;
        } else {
            return receive_into(&value);
        }
    }

    impl::channel_state state_;
};

template <class T>
class channel<T>::iterator {
public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    // The iterator owns the value: the loop may move from it.
    [[nodiscard]] T& operator*() const noexcept { return *value_; }
    [[nodiscard]] T* operator->() const noexcept { return std::addressof(*value_); }
    iterator& operator++() {
        value_.reset();
        // T need not be assignable.
        receive_as(value_, [&](void* into) { return calls::receive(channel_->state_, into); });
        return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !value_; }

private:
    friend class channel;
    explicit iterator(channel& of) : channel_{&of}, value_{of.receive()} {}

    channel* channel_;
    mutable std::optional<T> value_;
};

}  // namespace ums
