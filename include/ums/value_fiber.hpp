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
// Lifetime: destroying a joinable handle, or assigning to one, calls std::terminate(). The value or
//           the exception lies on the fiber's own stack, which is not used again until join() has
//           moved it out and destroyed it. The value of a detached fiber is dropped: by the fiber
//           itself when its fiber_local values are gone, or by detach() if it has ended before.
//           What a returned reference refers to must outlive the fiber, whose function and
//           arguments end with it.
// Errors:   as ums::fiber. join() rethrows an exception that left the function, or that the move of
//           the value throws; the fiber is joined then, too.
// Cost:     a fiber, without allocating. A value of more than 384 bytes, or aligned to more than
//           64, goes to the heap.

#include <new>
#include <type_traits>
#include <utility>

#include "ums/fiber.hpp"
#include "ums/impl/other_than.hpp"
#include "ums/impl/outcome.hpp"

namespace ums {

template <class T>
class value_fiber;

namespace impl {
template <class F, class... Args>
auto spawn_value(const fiber_options* options, F&& f, Args&&... args);
}

template <class T>
class [[nodiscard]] value_fiber {
public:
    using id = fiber_id;

    value_fiber() noexcept = default;
    value_fiber(value_fiber&& other) noexcept : fiber_{std::exchange(other.fiber_, nullptr)} {}
    value_fiber& operator=(value_fiber&& other) noexcept {
        if (joinable()) impl::terminate_joinable();
        fiber_ = std::exchange(other.fiber_, nullptr);
        return *this;
    }
    ~value_fiber() {
        if (joinable()) impl::terminate_joinable();
    }

    // As those of ums::fiber.
    [[nodiscard]] bool joinable() const noexcept { return fiber_ != nullptr; }
    [[nodiscard]] id get_id() const noexcept { return fiber_ != nullptr ? ref().id() : id{}; }
    [[nodiscard]] fiber_ref ref() const noexcept {
        return fiber_ != nullptr ? impl::ref_of(fiber_) : fiber_ref{};
    }

    // Waits for the end of the function, then returns what it returned or rethrows what it threw.
    T join() {
        if (fiber_ == nullptr) impl::throw_not_joinable("join()");
        const bool has_ended = impl::join_keeping(fiber_);
        sched::fiber* const ended = std::exchange(fiber_, nullptr);
        if (!has_ended) {
            if constexpr (std::is_void_v<T>) return;
            impl::throw_left_behind();
        }
        // When the value has been moved out, or the exception is on its way.
        struct finish {
            sched::fiber* fiber;
            ~finish() {
                impl::kept<outcome>(fiber).~outcome();
                impl::join_finish(fiber);
            }
        } const last{ended};
        return impl::kept<outcome>(ended).take();
    }
    // Lets the fiber run on alone and drops its outcome.
    void detach() {
        if (fiber_ == nullptr) impl::throw_not_joinable("detach()");
        impl::discard(std::exchange(fiber_, nullptr), &drop);
    }

private:
    using outcome = impl::outcome<T, true>;

    explicit value_fiber(sched::fiber* f) noexcept : fiber_{f} {}

    static void drop(void* fiber) {
        impl::kept<outcome>(static_cast<sched::fiber*>(fiber)).~outcome();
    }

    // Not a lambda: `ums ps` shows where a fiber starts by the name of this type, and the C++
    // runtime cannot demangle that of a generic lambda in here.
    struct call {
        outcome* out;
        template <class F, class... Args>
        void operator()(F&& f, Args&&... args) {
            out->call(std::forward<F>(f), std::forward<Args>(args)...);
        }
    };

    template <class F, class... Args>
    static value_fiber start(const fiber_options* options, F&& f, Args&&... args) {
        using bound = impl::bound<call, std::decay_t<F>, std::decay_t<Args>...>;
        impl::spawning begun{impl::beyond_launch(options), sizeof(bound), alignof(bound),
                             impl::kept_bytes<outcome>};
        // It owns nothing yet, so it may be left if the function cannot be copied.
        auto* const out = ::new (impl::kept_room<outcome>(begun.fiber())) outcome;
        void* const at = ::new (begun.storage())
            bound(std::in_place, call{out}, std::forward<F>(f), std::forward<Args>(args)...);
        sched::fiber* const made = begun.release();
        impl::spawn_commit(made, &bound::run_in_place, at, impl::launch_of(options));
        return value_fiber{made};
    }

    template <class F, class... Args>
    friend auto impl::spawn_value(const fiber_options* options, F&& f, Args&&... args);

    sched::fiber* fiber_ = nullptr;
};

namespace impl {

// The return type of the function; void if it cannot be called, which is reported elsewhere.
template <bool, class F, class... Args>
struct returned_by : std::type_identity<void> {};
template <class F, class... Args>
struct returned_by<true, F, Args...> : std::invoke_result<std::decay_t<F>, std::decay_t<Args>...> {
};

template <class F, class... Args>
auto spawn_value(const fiber_options* options, F&& f, Args&&... args) {
    static_assert(is_callable<F, Args...>,
                  "a fiber's function must be callable with copies of its arguments, as rvalues");
    using result = typename returned_by<is_callable<F, Args...>, F, Args...>::type;
    static_assert(is_returnable<result>,
                  "a fiber's function must not return an rvalue reference: return a value");
    if constexpr (is_callable<F, Args...> && is_returnable<result>)
        return value_fiber<result>::start(options, std::forward<F>(f), std::forward<Args>(args)...);
    else
        return value_fiber<void>{};
}

}  // namespace impl

// Runs f(args...) on a new fiber, with decayed copies that the caller makes.
template <class F, class... Args>
auto spawn(const fiber_options& options, F&& f, Args&&... args) {
    return impl::spawn_value(&options, std::forward<F>(f), std::forward<Args>(args)...);
}

// The same without options.
template <impl::other_than<fiber_options> F, class... Args>
auto spawn(F&& f, Args&&... args) {
    return impl::spawn_value(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace ums
