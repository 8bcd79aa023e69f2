// SPDX-License-Identifier: MIT
#pragma once

// ums/blocking.hpp: a call that blocks in the kernel, and does not stop the other fibers.
//
//     const int n = ums::blocking([&] { return ::read(pipe, buffer, sizeof buffer); });
//
// While the call is blocked the fiber's processor runs other fibers on another carrier (a kernel thread). When the call
// has returned the fiber waits for its turn on a processor, as if it had yielded; so it may go on on another kernel
// thread, as after any call of libums that waits. Nothing else about the call changes: signals, errors, errno.
//
// When the processor goes: with a block detector (ums::info() names it) as soon as the detector sees that the call
// really has blocked, so a call that turns out short costs next to nothing; without one at once.
//
// Bound. A region needs a permit, of which there are options::carriers less the number of processors; while all are in
// use the next region waits for one, parked, in order of arrival. So regions that wait for something that other
// fibers of the cluster do always end, however few carriers there may be.
//
// Inside a region libums may be called as usual; a call of it that waits takes a processor again, and what the region
// does after that is no longer marked. Regions nest; the outermost counts. On a plain thread a region does nothing.
//
// Errors: none of its own; what f throws passes through.
// Cost:   with a detector two short lock sections; without, and when the call blocks, about the wake-up of a kernel
//         thread and a switch more.

#include <utility>

#include "ums/export.hpp"

namespace ums {

namespace impl {
UMS_EXPORT void blocking_enter() noexcept;
UMS_EXPORT void blocking_leave() noexcept;
UMS_EXPORT void uninterruptible_enter() noexcept;
UMS_EXPORT void uninterruptible_leave() noexcept;
}  // namespace impl

// Marks what lies between its constructor and its destructor, which must run on the same fiber.
class blocking_region {
public:
    blocking_region() noexcept { impl::blocking_enter(); }
    ~blocking_region() { impl::blocking_leave(); }
    blocking_region(const blocking_region&) = delete;
    blocking_region& operator=(const blocking_region&) = delete;
};

// Returns what f() returns.
template <class F>
decltype(auto) blocking(F&& f) {
    const blocking_region marked;
    return std::forward<F>(f)();
}

// A section in which the fiber is not stopped by libums's signal: neither because its time slice is over, nor because a
// call of it has blocked unmarked and its processor went on to others. What it missed it makes up for at the end, by
// waiting for its turn if it has no processor. For code that holds a lock of the application's which the scheduling
// policy, or a replacement of malloc, needs as well. Sections nest. The fiber must not wait in libums in one.
// Cost: two calls.
class uninterruptible_section {
public:
    uninterruptible_section() noexcept { impl::uninterruptible_enter(); }
    ~uninterruptible_section() { impl::uninterruptible_leave(); }
    uninterruptible_section(const uninterruptible_section&) = delete;
    uninterruptible_section& operator=(const uninterruptible_section&) = delete;
};

// Returns what f() returns.
template <class F>
decltype(auto) uninterruptible(F&& f) {
    const uninterruptible_section marked;
    return std::forward<F>(f)();
}

}  // namespace ums
