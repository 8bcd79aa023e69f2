// SPDX-License-Identifier: MIT
#pragma once

// capi/exit_request.hpp: how ums_pthread_exit() gets from a deep call to the end of a fiber made in
// C.

namespace ums::capi {

// Thrown, and caught by the function that every fiber made in C begins with. Not a std::exception,
// so that a program's handlers of those let it pass.
struct exit_request {
    void* result;
};

// A fiber's function, when its result does not matter.
inline void run_function(void (*function)(void*), void* argument) {
    try {
        function(argument);
    } catch (const exit_request&) {
    }
}

}  // namespace ums::capi
