// SPDX-License-Identifier: MIT
#pragma once

// ums/this_fiber.hpp: what the running fiber does with itself.
//
// All of it also works on a plain kernel thread, which then yields, sleeps and parks as a thread.

#include <chrono>
#include <stop_token>
#include <string_view>
#include <type_traits>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/fiber_ref.hpp"

namespace ums {

class cluster;

// What ended a park.
enum class wake_reason : unsigned char { unparked, deadline_passed, stopped };

namespace this_fiber {

// Lets the other ready fibers of this processor run first. At least every 61st looks at work from
// elsewhere. About 10 ns.
UMS_EXPORT void yield() noexcept;

[[nodiscard]] UMS_EXPORT fiber_id get_id() noexcept;
[[nodiscard]] UMS_EXPORT std::string_view name() noexcept;

// Names the caller, so that others can unpark it.
[[nodiscard]] UMS_EXPORT fiber_ref ref() noexcept;

// Waits for an unpark(); one that came since the last park ends it at once. Never returns without.
UMS_EXPORT void park() noexcept;

// The same, but also ends when the deadline has passed or a stop is requested. Exactly one of the three
// ends it; an unpark() that loses the race is remembered for the next park.
UMS_EXPORT wake_reason park_until(deadline limit) noexcept;
UMS_EXPORT wake_reason park(const std::stop_token& stop) noexcept;
UMS_EXPORT wake_reason park_until(deadline limit, const std::stop_token& stop) noexcept;

template <class Rep, class Period>
wake_reason park_for(const std::chrono::duration<Rep, Period>& d) noexcept {
    return park_until(deadline_after(d));
}
template <class Rep, class Period>
wake_reason park_for(const std::chrono::duration<Rep, Period>& d,
                     const std::stop_token& stop) noexcept {
    return park_until(deadline_after(d), stop);
}

// Never returns early.
UMS_EXPORT void sleep_until(deadline limit) noexcept;

template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& t) noexcept {
    // A clock that can be set: ask it again each time. The steady one is compared exactly, so that
    // sleepers wake in the order of their times.
    const auto at = impl::in_ticks(t);
    for (auto now = Clock::now(); now < at; now = Clock::now()) {
        if constexpr (std::is_same_v<Clock, deadline::clock>)
            sleep_until(at);
        else
            sleep_until(impl::deadline_from(now, at));
    }
}

template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& d) noexcept {
    if (d > d.zero()) sleep_until(deadline_after(d));
}

// Goes on in another cluster, until it migrates back. A pinned fiber loses its pin. In a marked region it may wait there for a
// kernel thread, as at the beginning of one (ums/blocking.hpp). Requires: a fiber.
UMS_EXPORT void migrate(cluster& to) noexcept;

// How deep the stack has ever been used (by this fiber, or by those before it if measure_stacks is
// off), in whole pages. A system call. 0 on a plain thread.
[[nodiscard]] UMS_EXPORT std::size_t stack_high_water_bytes() noexcept;

}  // namespace this_fiber
}  // namespace ums
