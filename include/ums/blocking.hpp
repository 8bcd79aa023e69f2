// SPDX-License-Identifier: MIT
#pragma once

// ums/blocking.hpp: a call that may block in the kernel without stopping the other fibers.
//
//     const int n = ums::blocking([&] { return ::read(pipe, buffer, sizeof buffer); });
//
// While the call is blocked, the fiber's processor runs other fibers on another carrier (a kernel
// thread). When the call has returned, the fiber waits for its turn on a processor, as if it had
// yielded. So the fiber may continue on another kernel thread, as after any libums call that waits.
// Nothing else about the call changes: signals, errors and errno are the same.
//
// Blocking: with a block detector (ums::info() names it) the processor moves to another carrier as
//           soon as the detector sees that the call really has blocked, so a short call costs next
//           to nothing. Without a detector the processor moves at once. At the end of a region the
//           fiber may park until a processor takes it.
// Bound:    a region needs a permit. A cluster has options::carriers permits less the number of its
//           processors. While all permits are in use, the fiber that begins the next region parks
//           and waits for one, in order of arrival. So regions that wait for something that other
//           fibers of the cluster do always end, however few carriers there are.
// Nesting:  regions nest; the outermost counts. Code inside a region may call libums as usual. A
//           libums call that waits takes a processor again, and what the region does after that
//           call is no longer marked. On a plain thread a region does nothing.
// Errors:   none of its own; an exception of f passes through.
// Cost:     with a detector two short lock sections. Without one, or when the call blocks, also
//           about the wake-up of a kernel thread and a switch.

#include <utility>

#include "ums/export.hpp"

namespace ums {

namespace impl {
UMS_EXPORT void blocking_enter() noexcept;
UMS_EXPORT void blocking_leave() noexcept;
UMS_EXPORT void uninterruptible_enter() noexcept;
UMS_EXPORT void uninterruptible_leave() noexcept;
}  // namespace impl

// Marks the code between its constructor and its destructor as blocking. Both must run on the same
// fiber.
class blocking_region {
public:
    blocking_region() noexcept { impl::blocking_enter(); }
    ~blocking_region() { impl::blocking_leave(); }
    blocking_region(const blocking_region&) = delete;
    blocking_region& operator=(const blocking_region&) = delete;
};

// Calls f() inside a region and returns its result.
template <class F>
decltype(auto) blocking(F&& f) {
    const blocking_region marked;
    return std::forward<F>(f)();
}

// A section in which libums's signal does not stop the fiber. Outside one, the signal stops a fiber
// whose time slice is over, or whose processor moved on to other fibers because an unmarked call of
// the fiber blocked. A stop that came due inside takes effect at the end of the section, as if the
// signal had come there: the fiber waits for its turn, and keeps its kernel thread. Use a section
// around code that holds a lock of the application which the scheduling policy or a replacement of
// malloc needs as well. Sections nest. The fiber must not wait in libums inside one.
// Cost: two calls.
class uninterruptible_section {
public:
    uninterruptible_section() noexcept { impl::uninterruptible_enter(); }
    ~uninterruptible_section() { impl::uninterruptible_leave(); }
    uninterruptible_section(const uninterruptible_section&) = delete;
    uninterruptible_section& operator=(const uninterruptible_section&) = delete;
};

// Calls f() inside a section and returns its result.
template <class F>
decltype(auto) uninterruptible(F&& f) {
    const uninterruptible_section marked;
    return std::forward<F>(f)();
}

}  // namespace ums
