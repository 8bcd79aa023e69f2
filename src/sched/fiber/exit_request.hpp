// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/exit_request.hpp: how ums_pthread_exit() gets from a deep call to the end of the
// fiber.

namespace ums::sched {

// Thrown, and caught where a fiber's function was called, by the nearest code that wants its
// result. Not a std::exception, so that a program's handlers of those let it pass.
struct exit_request {
    void* result;
};

}  // namespace ums::sched
