// SPDX-License-Identifier: MIT
#include "ums/once.hpp"

#include "capi/call.hpp"

using namespace ums;
using namespace ums::capi;

// No noexcept here, and no catch: ums_pthread_exit() unwinds through this, and leaves the call
// undone.
void ums_once_call(ums_once_t* once, void (*function)(void*), void* argument) {
    call_once(object<once_flag>(once), function, argument);
}
