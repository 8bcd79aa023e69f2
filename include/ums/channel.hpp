// SPDX-License-Identifier: MIT
#pragma once

// ums/channel.hpp: values from those who send to those who receive.
//
//   ums::channel<T> c;                  unbuffered: a send and a receive meet
//   ums::channel<T> c{100};             buffered: 100 values may lie in it
//   ums::channel<T> c{ums::unbounded};  a send never waits
//
// Any number of fibers and plain kernel threads may send and receive at once. close() says that
// nothing more comes: receivers get what is still in the channel and then the end, senders are
// refused and keep their value. select.hpp waits for several channels.
//
//   for (T& value : c) ...              receives until the end
//
//   c.send_all(values);                 several at once, in one section each time there is room
//   c.receive_some(into, 100);          what is there, at least one, at most 100
//
// Blocking:  send() and receive() park the fiber, never its processor; a plain kernel thread waits
//            on a futex. try_ forms, close() and the observers never block. Not from a signal
//            handler.
// Fairness:  values come out in the order they went in. Receivers are served first come, first
//            served, and so are senders; nobody overtakes those that wait.
// Ordering:  what happens before a send is visible after the receive of its value, and what happens
//            before a close() is visible after the receive that saw the end. Unbuffered: also what
//            happens before the receive is visible after the send. A channel of capacity n: what
//            happens before the receive of a value is visible after the send of the nth after it.
// Lifetime:  may be destroyed as soon as the last operation that waited has returned, even while
//            the one that woke it is still returning. Nobody may wait in it. Values left in it are
//            destroyed.
// Errors:    An exception from T's move leaves the operation it happened in, which then has not
//            taken place: the value, in whatever state that move left it, is with its sender or in
//            the channel still; it is never doubled. A buffered sender's value that is moved into
//            the channel by a receiver: its sender tries again itself. A capacity that cannot be:
//            std::length_error; no memory: std::bad_alloc. The move constructor and the destructor
//            of T run under the channel's lock: they must not block, nor use the channel. While a
//            slow one runs, other users of the channel wait in the kernel.
// Cost:      one read-modify-write and one move of T for each operation; a partner that waits is
//            handed the value directly. One that has to wait costs a switch more, none that is
//            timed two read-modify-writes. send_all() and receive_some() pay that once for all values
//            for which there is room, or which are there. No allocation, but of an unbounded one: a block for each
//            4 KiB. While all waits come from one processor, and T is moved by copying at most
//            256 bytes: no read-modify-write at all; who comes from elsewhere then pays a system
//            call, once.

#include <algorithm>
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

namespace ums {

inline constexpr std::size_t unbounded = ~std::size_t{0};

// What was received, or why nothing was: a std::optional<T> with a status. Where a T can be made from
// such an object itself, as a bool or a std::any can, do not make another std::optional<T> from it:
// that would have a value always. static_cast<std::optional<T>&&>(it) is the plain one.
template <class T>
class received : public std::optional<T> {
public:
    [[nodiscard]] channel_status status() const noexcept { return status_; }

private:
    template <class>
    friend class channel;
    channel_status status_ = channel_status::empty;
};

// How many values went through, and why not more.
struct batch {
    std::size_t count = 0;
    channel_status status = channel_status::ok;

    // As the single forms: whether it went as asked for.
    explicit operator bool() const noexcept { return status == channel_status::ok; }
};

template <class T>
class channel {
    static_assert(std::is_object_v<T> && std::is_move_constructible_v<T> &&
                  std::is_destructible_v<T>);

public:
    using value_type = T;
    class iterator;

    explicit channel(std::size_t capacity = 0) {
        calls::open(state_, impl::element_type_of<T>, capacity);
    }
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() { calls::destroy(state_); }

    // ok or closed. The value is moved from only if it was sent.
    [[nodiscard]] channel_status send(T&& value) {
        return calls::send(state_, std::addressof(value));
    }
    [[nodiscard]] channel_status send(const T& value) requires std::is_copy_constructible_v<T> {
        T copy(value);
        return calls::send(state_, std::addressof(copy));
    }

    // ok, closed or stopped. Prefers to send if both are possible.
    [[nodiscard]] channel_status send(T&& value, const std::stop_token& stop) {
        return calls::send_until(state_, std::addressof(value), deadline::max(), &stop);
    }
    [[nodiscard]] channel_status send(
        const T& value, const std::stop_token& stop) requires std::is_copy_constructible_v<T> {
        T copy(value);
        return calls::send_until(state_, std::addressof(copy), deadline::max(), &stop);
    }

    // ok, closed or full.
    [[nodiscard]] channel_status try_send(T&& value) {
        return calls::try_send(state_, std::addressof(value));
    }
    [[nodiscard]] channel_status try_send(const T& value) requires std::is_copy_constructible_v<T> {
        T copy(value);
        return calls::try_send(state_, std::addressof(copy));
    }

    // ok, closed, deadline_passed or (with a token) stopped. Tries at least once.
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

    // The next value, or nothing: closed, and all received.
    [[nodiscard]] std::optional<T> receive() {
        std::optional<T> value;
        calls::receive(state_, &value);
        return value;  // Not moved.
    }
    [[nodiscard]] std::optional<T> receive() requires impl::moves_as_bytes<T> {
        std::optional<T> value;
        calls::receive(state_, &value);
        // A copy of the whole, of a value and a flag that were stored one by one just now, would
        // wait for both.
        if (!value) return std::nullopt;
        return std::optional<T>{std::move(*value)};
    }

    // Its status() is ok, closed or stopped. Prefers a value if both happen.
    [[nodiscard]] received<T> receive(const std::stop_token& stop) {
        return receive_until(deadline::max(), stop);
    }

    // Its status() is ok, closed or empty.
    [[nodiscard]] received<T> try_receive() {
        received<T> value;
        value.status_ = calls::try_receive(state_, base_of(value));
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
            value.status_ = calls::receive_until(state_, base_of(value), limit, &stop);
            return value.status_ != channel_status::deadline_passed;
        });
        return value;
    }

    // Moves all of `values` in, in their order; those of others may come in between. ok; or closed, stopped or
    // deadline_passed, and then the first `count` of them were sent. If a move throws it is not known how many were.
    batch send_all(std::span<T> values, const std::stop_token& stop = {}) {
        return send_all_until(values, deadline::max(), stop);
    }
    batch send_all_until(std::span<T> values, deadline limit, const std::stop_token& stop = {}) {
        batch result;
        const impl::channel_batch all{[](void* first, std::size_t i) -> void* {
                                          return static_cast<T*>(first) + i;
                                      },
                                      values.data(), values.size(),
                                      impl::moves_as_bytes<T>
                                          ? reinterpret_cast<std::byte*>(values.data())
                                          : nullptr};
        result.status = calls::send_all(state_, all, result.count, limit, &stop);
        return result;
    }

    // Waits for a value, then takes what else is there, at most `most`, and appends them to `into`. closed: the end.
    template <class Container>
    batch receive_some(Container& into, std::size_t most, const std::stop_token& stop = {}) {
        return receive_some_until(into, most, deadline::max(), stop);
    }
    template <class Container>
    batch receive_some_until(Container& into, std::size_t most, deadline limit,
                             const std::stop_token& stop = {}) {
        if constexpr (impl::moves_as_bytes<T>)
            return receive_bytes(into, most, limit, stop);
        else
            return receive_objects(into, most, limit, stop);
    }

    // Wakes all that wait. Again: nothing.
    void close() noexcept { calls::close(state_); }

    // True at that moment; for the others it may change at once.
    [[nodiscard]] bool is_closed() const noexcept { return calls::is_closed(state_); }
    // How many values lie in it; those of senders that wait are not counted.
    [[nodiscard]] std::size_t size() const noexcept { return calls::size(state_); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    [[nodiscard]] std::size_t capacity() const noexcept { return state_.capacity; }

    // begin() and ++ receive. Several loops over one channel share what comes.
    [[nodiscard]] iterator begin() { return iterator{*this}; }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
    using calls = impl::channel_calls;
    friend struct channel_access;

    template <class Container>
    batch receive_bytes(Container& into, std::size_t most, deadline limit,
                        const std::stop_token& stop) {
        constexpr std::size_t piece = std::max<std::size_t>(1024 / sizeof(T), 1);
        alignas(T) std::byte values[piece * sizeof(T)];
        batch result;
        while (result.count < most) {
            std::size_t got = 0;
            calls::receive_bytes(
                state_, {nullptr, nullptr, std::min(piece, most - result.count), values}, got);
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
            std::optional<T> values[piece];
            const impl::channel_batch all{[](void* first, std::size_t i) -> void* {
                                              return static_cast<std::optional<T>*>(first) + i;
                                          },
                                          values, std::min(piece, most - result.count)};
            std::size_t got = 0;
            const channel_status status =
                result.count == 0 ? calls::receive_some(state_, all, got, limit, &stop)
                                  : calls::receive_ready(state_, all, got);
            for (std::size_t i = 0; i < got; ++i) into.push_back(std::move(*values[i]));
            if (got == 0) return {result.count, result.count == 0 ? status : channel_status::ok};
            result.count += got;
        }
        return result;
    }

    static std::optional<T>* base_of(received<T>& value) noexcept { return &value; }

    impl::channel_state state_;
};

template <class T>
class channel<T>::iterator {
public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    // The value is the iterator's: it may be moved from.
    [[nodiscard]] T& operator*() const noexcept { return *value_; }
    [[nodiscard]] T* operator->() const noexcept { return std::addressof(*value_); }
    iterator& operator++() {
        value_.reset();
        calls::receive(channel_->state_, &value_);  // T need not be assignable.
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
