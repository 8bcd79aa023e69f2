// SPDX-License-Identifier: MIT
#pragma once

// ums/jfiber.hpp: a fiber whose handle requests a stop and joins when destroyed. As std::jthread.
//
// If the function takes a std::stop_token as its first argument, it gets the handle's token.
//
// Blocking: the destructor, the move assignment and join() wait for the fiber's end: they park a
//           fiber and block a plain thread. Construction, detach() and request_stop() never block
//           (a std::stop_callback runs inside request_stop()).
// Lifetime: the destructor and the move assignment request a stop and then join. A function that
//           ignores the stop delays them. Destroying the handle on its own fiber ends the program.
// Errors:   as ums::fiber; construction may also throw std::bad_alloc (the stop state).
// Cost:     a fiber, and an allocation for the stop state.

#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/fiber.hpp"
#include "ums/impl/other_than.hpp"

namespace ums {

class jfiber {
public:
    using id = fiber_id;
    using native_handle_type = fiber::native_handle_type;

    // A handle of no fiber; it has no stop state.
    jfiber() noexcept : stop_{std::nostopstate} {}

    // Runs f(args...), or f(get_stop_token(), args...), on a new fiber, with decayed copies that
    // the caller makes. With options: as for ums::fiber.
    template <impl::other_than<jfiber, fiber_options> F, class... Args>
    explicit jfiber(F&& f, Args&&... args)
        : fiber_{start(nullptr, stop_, std::forward<F>(f), std::forward<Args>(args)...)} {}

    template <class F, class... Args>
    jfiber(const fiber_options& options, F&& f, Args&&... args)
        : fiber_{start(&options, stop_, std::forward<F>(f), std::forward<Args>(args)...)} {}

    jfiber(jfiber&&) noexcept = default;
    jfiber& operator=(jfiber&& other) noexcept {
        if (this != &other) {
            stop_and_join();
            stop_ = std::move(other.stop_);
            fiber_ = std::move(other.fiber_);
        }
        return *this;
    }
    ~jfiber() { stop_and_join(); }

    void swap(jfiber& other) noexcept {
        std::swap(stop_, other.stop_);
        fiber_.swap(other.fiber_);
    }
    friend void swap(jfiber& a, jfiber& b) noexcept { a.swap(b); }

    // As those of ums::fiber.
    [[nodiscard]] bool joinable() const noexcept { return fiber_.joinable(); }
    [[nodiscard]] id get_id() const noexcept { return fiber_.get_id(); }
    [[nodiscard]] fiber_ref ref() const noexcept { return fiber_.ref(); }
    [[nodiscard]] native_handle_type native_handle() const noexcept { return ref(); }
    void join() { fiber_.join(); }
    void detach() { fiber_.detach(); }

    // The handle's stop state. request_stop() returns whether this call was the first.
    [[nodiscard]] std::stop_source get_stop_source() noexcept { return stop_; }
    [[nodiscard]] std::stop_token get_stop_token() const noexcept { return stop_.get_token(); }
    bool request_stop() noexcept { return stop_.request_stop(); }

    [[nodiscard]] static unsigned hardware_concurrency() noexcept {
        return fiber::hardware_concurrency();
    }

private:
    template <class F, class... Args>
    static fiber start(const fiber_options* options, std::stop_source& stop, F&& f,
                       Args&&... args) {
        const fiber_options defaults{};
        const fiber_options& chosen = options != nullptr ? *options : defaults;
        if constexpr (std::is_invocable_v<std::decay_t<F>, std::stop_token, std::decay_t<Args>...>)
            return fiber{chosen, std::forward<F>(f), stop.get_token(), std::forward<Args>(args)...};
        else
            return fiber{chosen, std::forward<F>(f), std::forward<Args>(args)...};
    }

    void stop_and_join() noexcept {
        if (!joinable()) return;
        request_stop();
        join();
    }

    std::stop_source stop_;
    fiber fiber_;
};

}  // namespace ums
