// SPDX-License-Identifier: MIT
#pragma once

// ums/this_fiber.hpp: operations of the running fiber on itself.
//
// All functions but migrate() also work on a plain kernel thread, which then yields, sleeps and
// parks as a thread.
//
// Blocking: yield(), the parks, the sleeps and migrate() switch to other fibers; the processor
//           never waits with the caller. The fiber may continue on another kernel thread. A plain
//           thread blocks. Not from a signal handler. The other functions never block.
// Fairness: yield() puts the fiber at the back of its processor's queue, unless a policy of your
//           own decides otherwise.
// Ordering: what happens before an unpark() is visible after the park() that it ends. What happens
//           before a request_stop() is visible after the park that it ends.
// Errors:   migrate() to a processor that does not exist throws std::system_error,
//           invalid_argument. migrate() on a plain thread, or to another cluster inside
//           ums::keep_carrier, ends the program with a message.
// Cost:     yield() about 10 ns; a park at least an atomic read-modify-write and a switch.

#include <chrono>
#include <stop_token>
#include <string_view>
#include <type_traits>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/fiber_ref.hpp"

namespace ums {

class cluster;

// The event that ended a park.
enum class wake_reason : unsigned char { unparked, deadline_passed, stopped };

namespace this_fiber {

// Lets the other ready fibers of this processor run first. At least every 61st yield also looks for
// work from elsewhere. About 10 ns.
UMS_EXPORT void yield() noexcept;

// The same, and returns whether the caller stopped for anything. False: nothing else was ready on
// this processor (or the cluster's policy chose the caller again), so a loop that polls may pause
// until its next time by park_until(). On a plain thread always false, because the kernel does not
// say.
UMS_EXPORT bool try_yield() noexcept;

// The caller's identity; none for a plain thread.
[[nodiscard]] UMS_EXPORT fiber_id get_id() noexcept;
// The caller's name, empty if it has none. The text lives as long as the fiber.
[[nodiscard]] UMS_EXPORT std::string_view name() noexcept;

// Names the caller, so that others can unpark it.
[[nodiscard]] UMS_EXPORT fiber_ref ref() noexcept;

// Waits for an unpark(). One that came since the last park ends it at once. It never returns
// without an unpark().
UMS_EXPORT void park() noexcept;

// The same, but these also end when the deadline has passed or a stop is requested. Exactly one of
// the three ends a park; an unpark() that loses the race is remembered for the next park.
UMS_EXPORT wake_reason park_until(deadline limit) noexcept;
UMS_EXPORT wake_reason park(const std::stop_token& stop) noexcept;
UMS_EXPORT wake_reason park_until(deadline limit, const std::stop_token& stop) noexcept;

// The same for a duration.
template <class Rep, class Period>
wake_reason park_for(const std::chrono::duration<Rep, Period>& d) noexcept {
    return park_until(deadline_after(d));
}
template <class Rep, class Period>
wake_reason park_for(const std::chrono::duration<Rep, Period>& d,
                     const std::stop_token& stop) noexcept {
    return park_until(deadline_after(d), stop);
}

// Waits until `limit`. Never returns early, and no unpark() ends it.
UMS_EXPORT void sleep_until(deadline limit) noexcept;

template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& t) noexcept {
    // A clock that can be set is asked again each time. The steady clock is compared exactly, so
    // sleepers wake in the order of their times.
    const auto at = impl::in_ticks(t);
    for (auto now = Clock::now(); now < at; now = Clock::now()) {
        if constexpr (std::is_same_v<Clock, deadline::clock>)
            sleep_until(at);
        else
            sleep_until(impl::deadline_from(now, at));
    }
}

// Waits for `d`; returns at once if it is not positive.
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& d) noexcept {
    if (d > d.zero()) sleep_until(deadline_after(d));
}

// Moves the fiber to another cluster, where it stays until it migrates back. A pinned fiber loses
// its pin. Inside a marked region the fiber may wait there for a kernel thread, as at the beginning
// of a region (ums/blocking.hpp). Requires: the caller is a fiber.
UMS_EXPORT void migrate(cluster& to) noexcept;

// The same, but to the processor of that index, also within the fiber's own cluster: the fiber runs
// there when this returns. From then on its cluster's policy decides: under a policy with a queue
// per processor the fiber belongs to that processor, under another it may run elsewhere after its
// next switch. A pinned fiber stays pinned, to that processor. If that is
// removed meanwhile, processor 0 takes its place. The call waits until that processor's fibers let
// the caller in: at most 61 of their switches. Errors: see above.
UMS_EXPORT void migrate(cluster& to, unsigned processor);

// How deep the stack has ever been used, in bytes, rounded up to whole pages. Unless measure_stacks
// is on, this includes the use by earlier fibers, and what lay below a park of several seconds does
// not count any more, because its memory was given back. 0 on a plain thread. Cost: a system call.
[[nodiscard]] UMS_EXPORT std::size_t stack_high_water_bytes() noexcept;

}  // namespace this_fiber
}  // namespace ums
