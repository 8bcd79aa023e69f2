// SPDX-License-Identifier: MIT
#pragma once

// windows/fiber.hpp: Windows' fibers: stacks that a thread switches between by itself.

namespace ums::windows {

class thread;

// Before the calling thread ends: if it runs on another stack than its own, goes back to that, which calls
// thread::exit() again; it does not return then.
void leave_fiber(thread& t);

// The thread has ended: it was a fiber no longer.
void forget_fiber(thread& t) noexcept;

}  // namespace ums::windows
