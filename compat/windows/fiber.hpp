// SPDX-License-Identifier: MIT
#pragma once

// windows/fiber.hpp: Windows' fibers, which are stacks that a thread switches between by itself.

namespace ums::windows {

class thread;

// Call before the calling thread ends. If the thread runs on a stack that is not its own, this goes
// back to its own stack, which calls thread::exit() again, and does not return.
void leave_fiber(thread& t);

// The thread has ended and is no longer a fiber.
void forget_fiber(thread& t) noexcept;

}  // namespace ums::windows
