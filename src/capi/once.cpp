// SPDX-License-Identifier: MIT
#include "ums/once.hpp"

#include "capi/call.hpp"

using namespace ums;
using namespace ums::capi;

// No noexcept here, nor a catch: ums_pthread_exit() unwinds through it, and leaves it undone.
void ums_once_call(ums_once_t* once, void (*function)(void*), void* argument) {
    call_once(object<once_flag>(once), function, argument);
}
