// SPDX-License-Identifier: MIT
#pragma once

// ums/select.hpp: waits for the first of several events.
//
//   ums::select(ums::on_receive(numbers, [&](std::optional<int> n) { ... }),  // empty: closed
//               ums::on_send(words, "hello", [] { ... }),
//               ums::on_deadline(limit, [] { ... }),
//               ums::on_stop(token, [] { ... }));
//
// Exactly one case happens; select() calls its function and returns its index. With otherwise()
// among the cases it does not wait. The same channel may occur several times. If the cases are
// known only at run time, pass a span of cases of one type, or of pointers to select_case.
//
// A receive happens when a value has come, or the channel is closed and drained. A send happens
// when the value has been taken, or the channel is closed. selected::status tells which, and so
// does the channel_status that a send's function may take. A send moves from its value only if the
// value was sent.
//
// Blocking:  parks the fiber, never its processor; a plain kernel thread waits on a futex. The
//            caller itself runs the function afterwards, with no lock held.
// Fairness:  of several cases that are possible at once each may be chosen, from a random start. A
//            waiting select is served in its turn in each channel.
// Ordering:  that of the operation that happened. A deadline orders nothing; what happens before a
//            request_stop() is visible after the stop case.
// Lifetime:  the channels must live until select() has returned. Named cases may be used again.
// Errors:    what a move of T, or the function, throws. None of the other cases has happened then.
// Cost:      while it looks, select() locks all its channels at once, in the order of their
//            addresses. When it waits, it locks each once more, one by one. No allocation.

#include <array>
#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/channel.hpp"
#include "ums/impl/select.hpp"

namespace ums {

struct channel_access {
    template <class T>
    static impl::channel_state& state(channel<T>& c) noexcept {
        return c.state_;
    }
};

namespace impl {

struct nothing {
    void operator()() const noexcept {}
};

template <class C>
concept some_case = std::derived_from<std::remove_cvref_t<C>, select_case>;

template <class T, class F>
class receive_case : public select_case {
public:
    receive_case(channel<T>& c, F f) : select_case{kind::receive}, f_{std::move(f)} {
        channel_ = &channel_access::state(c);
        value_ = [](select_case& self) -> void* {
            auto& own = static_cast<receive_case&>(self);
            own.slot_.reset();
            if constexpr (moves_as_bytes<T>)
                return own.raw_.place();
            else
                return &own.slot_;
        };
        run_ = [](select_case& self) {
            auto& own = static_cast<receive_case&>(self);
            if constexpr (moves_as_bytes<T>)
                if (own.status_ == channel_status::ok) own.slot_.emplace(own.raw_.take());
            if constexpr (!std::is_same_v<F, nothing>) std::invoke(own.f_, std::move(own.slot_));
        };
    }

    // The received value, if the case has no function. Empty: the channel is closed.
    [[nodiscard]] std::optional<T>& value() noexcept { return slot_; }

private:
    std::optional<T> slot_;
    [[no_unique_address]] std::conditional_t<moves_as_bytes<T>, raw_value<T>, nothing> raw_;
    F f_;
};

// Holder: T, or T& if the value stays with the caller until it is sent.
template <class T, class Holder, class F>
class send_case : public select_case {
public:
    template <class V>
    send_case(channel<T>& c, V&& v, F f)
        : select_case{kind::send}, held_(std::forward<V>(v)), f_{std::move(f)} {
        channel_ = &channel_access::state(c);
        value_ = [](select_case& self) -> void* {
            return std::addressof(static_cast<send_case&>(self).held_);
        };
        run_ = [](select_case& self) {
            auto& own = static_cast<send_case&>(self);
            if constexpr (std::is_invocable_v<F&, channel_status>)
                std::invoke(own.f_, own.status_);
            else if (own.status_ == channel_status::ok)
                std::invoke(own.f_);
        };
    }

    // The value to send next, if the case is used again; after a select, the value not sent.
    [[nodiscard]] T& value() noexcept { return held_; }

private:
    Holder held_;
    F f_;
};

template <class F>
class plain_case : public select_case {
public:
    plain_case(kind what, F f) : select_case{what}, f_{std::move(f)} {
        run_ = [](select_case& self) { std::invoke(static_cast<plain_case&>(self).f_); };
    }
    static plain_case at_deadline(deadline at, F f) {
        plain_case made{kind::time, std::move(f)};
        made.at_ = at;
        return made;
    }
    static plain_case at_stop(std::stop_token token, F f) {
        plain_case made{kind::stop, std::move(f)};
        made.token_ = std::move(token);
        return made;
    }
    static plain_case at_once(F f) { return plain_case{kind::otherwise, std::move(f)}; }

private:
    F f_;
};

}  // namespace impl

// Calls f(std::optional<T>), empty if the channel is closed and drained. Without f see value().
template <class T, std::invocable<std::optional<T>> F>
[[nodiscard]] impl::receive_case<T, F> on_receive(channel<T>& c, F f) {
    return {c, std::move(f)};
}
template <class T>
[[nodiscard]] impl::receive_case<T, impl::nothing> on_receive(channel<T>& c) {
    return {c, {}};
}

// Calls f() when the value was sent, or f(channel_status) also when the channel is closed. The case
// holds the value.
template <class T, class V, class F = impl::nothing>
requires std::constructible_from<T, V>
[[nodiscard]] impl::send_case<T, T, F> on_send(channel<T>& c, V&& value, F f = {}) {
    return {c, std::forward<V>(value), std::move(f)};
}
// The same, but the value stays where it is until it is sent.
template <class T, class F = impl::nothing>
[[nodiscard]] impl::send_case<T, T&, F> on_send(channel<T>& c, std::reference_wrapper<T> value,
                                                F f = {}) {
    return {c, value.get(), std::move(f)};
}

// Happens when `t` has passed.
template <class Clock, class Duration, std::invocable F = impl::nothing>
[[nodiscard]] impl::plain_case<F> on_deadline(const std::chrono::time_point<Clock, Duration>& t,
                                              F f = {}) {
    return impl::plain_case<F>::at_deadline(deadline_at(t), std::move(f));
}
// Happens when `d` has passed, counted from this call, not from the select.
template <class Rep, class Period, std::invocable F = impl::nothing>
[[nodiscard]] impl::plain_case<F> on_timeout(const std::chrono::duration<Rep, Period>& d,
                                             F f = {}) {
    return impl::plain_case<F>::at_deadline(deadline_after(d), std::move(f));
}

// Happens when a stop of `token` is requested.
template <std::invocable F = impl::nothing>
[[nodiscard]] impl::plain_case<F> on_stop(std::stop_token token, F f = {}) {
    return impl::plain_case<F>::at_stop(std::move(token), std::move(f));
}

// Happens if none of the other cases is possible, all looked at in one instant.
template <std::invocable F = impl::nothing>
[[nodiscard]] impl::plain_case<F> otherwise(F f = {}) {
    return impl::plain_case<F>::at_once(std::move(f));
}

// Waits for the first of `cases`. Requires: at least one case.
inline selected select(std::span<select_case* const> cases) {
    for (std::size_t i = 0; i < cases.size(); ++i)
        select_access::chain(*cases[i], i + 1 < cases.size() ? cases[i + 1] : nullptr);
    const selected result = select_access::select(cases.empty() ? nullptr : cases[0], cases.size());
    select_access::run(*cases[result.index]);
    return result;
}

// The same for a span of cases of one type.
template <std::derived_from<select_case> Case>
selected select(std::span<Case> cases) {
    for (std::size_t i = 0; i < cases.size(); ++i)
        select_access::chain(cases[i], i + 1 < cases.size() ? &cases[i + 1] : nullptr);
    const selected result =
        select_access::select(cases.empty() ? nullptr : cases.data(), cases.size());
    select_access::run(cases[result.index]);
    return result;
}

// The same for cases named one by one.
template <impl::some_case First, impl::some_case... Others>
selected select(First&& first, Others&&... others) {
    const std::array<select_case*, 1 + sizeof...(Others)> all{
        &static_cast<select_case&>(first), &static_cast<select_case&>(others)...};
    return select(std::span<select_case* const>{all});
}

}  // namespace ums
