// SPDX-License-Identifier: MIT
#pragma once

// ums/fiber.hpp: a user-level thread with its own stack. Same API as std::thread.
//
// A fiber runs on the processors of one cluster and moves between them. It gives way where it
// blocks through this library, yields or ends, and where its time slice is over
// (options::time_slice_us). Fibers and plain kernel threads alike may create, join and detach
// fibers, while a runtime is running (ums::run).
//
// Blocking:  join() parks the calling fiber, or blocks the calling plain thread. Construction and
//            detach() never block; with launch::dispatch the creator continues once the new fiber
//            stops.
// Ordering:  construction happens before the function starts; the function's end happens before
//            join() returns.
// Lifetime:  destroying a joinable handle, or assigning to one, calls std::terminate(), as
//            std::thread does.
// Errors:    std::system_error. Construction: resource_unavailable_try_again (no stack),
//            invalid_argument (a stack of more than 1 GiB), operation_not_permitted (no runtime is
//            running). join(): invalid_argument (not joinable), resource_deadlock_would_occur (a
//            fiber joins itself). detach(): invalid_argument (not joinable). An exception that
//            leaves the function ends the program with its what() and the fiber's name.
// Cost:      spawn and join take about 60 ns, without allocating.

#include <compare>
#include <stop_token>
#include <system_error>
#include <utility>

#include "ums/fiber_ref.hpp"
#include "ums/impl/other_than.hpp"
#include "ums/impl/spawn.hpp"
#include "ums/options.hpp"

namespace ums {

class fiber {
public:
    using id = fiber_id;
    using native_handle_type = fiber_ref;

    // A handle of no fiber.
    fiber() noexcept = default;

    // Runs f(args...) on a new fiber, with decayed copies made by the caller.
    template <impl::other_than<fiber, fiber_options> F, class... Args>
    explicit fiber(F&& f, Args&&... args)
        : fiber_{impl::spawn(nullptr, std::forward<F>(f), std::forward<Args>(args)...)} {}

    // The same with options: name, stack size, cluster, ...
    template <class F, class... Args>
    fiber(const fiber_options& options, F&& f, Args&&... args)
        : fiber_{impl::spawn(&options, std::forward<F>(f), std::forward<Args>(args)...)} {}

    fiber(fiber&& other) noexcept : fiber_{std::exchange(other.fiber_, nullptr)} {}
    fiber& operator=(fiber&& other) noexcept {
        if (joinable()) impl::terminate_joinable();
        fiber_ = std::exchange(other.fiber_, nullptr);
        return *this;
    }
    ~fiber() {
        if (joinable()) impl::terminate_joinable();
    }

    void swap(fiber& other) noexcept { std::swap(fiber_, other.fiber_); }
    friend void swap(fiber& a, fiber& b) noexcept { a.swap(b); }

    // Whether this handle owns a fiber; the fiber's id, or the default id.
    [[nodiscard]] bool joinable() const noexcept { return fiber_ != nullptr; }
    [[nodiscard]] id get_id() const noexcept { return fiber_ != nullptr ? ref().id() : id{}; }

    // Names the fiber, so that others can unpark it. Empty if not joinable.
    [[nodiscard]] fiber_ref ref() const noexcept {
        return fiber_ != nullptr ? impl::ref_of(fiber_) : fiber_ref{};
    }

    [[nodiscard]] native_handle_type native_handle() const noexcept { return ref(); }

    // Waits until the function has returned. Any fiber or thread may join, once.
    void join() {
        if (fiber_ == nullptr) impl::throw_not_joinable("join()");
        impl::join(fiber_);
        fiber_ = nullptr;
    }

    // Lets the fiber run on alone. The runtime reuses its stack when its function has returned.
    void detach() {
        if (fiber_ == nullptr) impl::throw_not_joinable("detach()");
        impl::detach(std::exchange(fiber_, nullptr));
    }

    // The number of CPUs that this process may use; at least 1.
    [[nodiscard]] UMS_EXPORT static unsigned hardware_concurrency() noexcept;

private:
    sched::fiber* fiber_ = nullptr;
};

}  // namespace ums
