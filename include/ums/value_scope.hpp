// SPDX-License-Identifier: MIT
#pragma once

// ums/value_scope.hpp: a scope that collects what its children return.
//
//   ums::value_scope<page> all;
//   for (const url& u : urls) all.spawn(fetch, u);
//   std::vector<page> pages = all.join();  // In the order of the spawns.
//
// In all else it is a ums::scope: a child's function may take a std::stop_token first, the first
// exception requests a stop of all and is rethrown by join(), when all have ended.
//
// Blocking:  as ums::scope. spawn() may wait for another spawn() into the same scope.
// Ordering:  as ums::scope.
// Lifetime:  the values lie in the scope until join() moves them out. If join() throws, or nobody
//            calls it, they are dropped. After join() the scope begins anew. The fiber or thread
//            that joins does so when nobody spawns, except children.
// Errors:    as ums::scope, and std::bad_alloc. join() also throws what the move of a value throws.
// Cost:      as ums::scope, and a place in a std::deque for each child.

#include <concepts>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "ums/impl/other_than.hpp"
#include "ums/mutex.hpp"
#include "ums/scope.hpp"

namespace ums {

template <class T>
class value_scope {
    static_assert(std::is_object_v<T> && std::move_constructible<T>,
                  "a value_scope collects objects that can be moved");

public:
    // As those of ums::scope.
    value_scope() = default;
    explicit value_scope(const fiber_options& children) : children_{children} {}
    explicit value_scope(std::stop_token parent) : children_{std::move(parent)} {}
    value_scope(const fiber_options& children, std::stop_token parent)
        : children_{children, std::move(parent)} {}

    // Runs f(args...), or f(get_stop_token(), args...), on a new fiber, with decayed copies that
    // the caller makes. It returns a T, or what a T can be made of.
    template <impl::other_than<fiber_options> F, class... Args>
    void spawn(F&& f, Args&&... args) {
        children_.spawn(call{add()}, std::forward<F>(f), std::forward<Args>(args)...);
    }
    template <class F, class... Args>
    void spawn(const fiber_options& options, F&& f, Args&&... args) {
        children_.spawn(options, call{add()}, std::forward<F>(f), std::forward<Args>(args)...);
    }

    // Waits until no child is left. Returns their values, or rethrows the first exception.
    std::vector<T> join() {
        const drop at_the_end{values_};
        children_.join();
        std::vector<T> all;
        all.reserve(values_.size());
        for (std::optional<T>& one : values_)
            if (one) all.push_back(std::move(*one));  // Else its child could not be made.
        return all;
    }

    bool request_stop() noexcept { return children_.request_stop(); }
    [[nodiscard]] std::stop_token get_stop_token() const { return children_.get_stop_token(); }
    [[nodiscard]] std::stop_source get_stop_source() const { return children_.get_stop_source(); }

private:
    struct drop {
        std::deque<std::optional<T>>& values;
        ~drop() { values.clear(); }
    };
    // Not a lambda, for the reason given in value_fiber.hpp.
    struct call {
        std::optional<T>* to;
        template <class F, class... Args>
        requires std::is_invocable_v<F, Args...>
        void operator()(F&& f, Args&&... args) {
            to->emplace(impl::invoke(std::forward<F>(f), std::forward<Args>(args)...));
        }
        template <class F, class... Args>
        requires std::is_invocable_v<F, std::stop_token, Args...>
        void operator()(std::stop_token stop, F&& f, Args&&... args) {
            to->emplace(
                impl::invoke(std::forward<F>(f), std::move(stop), std::forward<Args>(args)...));
        }
    };

    std::optional<T>* add() {
        const std::lock_guard guard{adds_};
        return &values_.emplace_back();
    }

    mutex adds_;
    std::deque<std::optional<T>> values_;
    scope children_;  // Destroyed first: it waits for those that write the values.
};

}  // namespace ums
