// SPDX-License-Identifier: MIT
#pragma once

// windows/create_worker.hpp: threads made with PROC_THREAD_ATTRIBUTE_UMS_THREAD.

#include "ums/compat/windows/windows.h"

namespace ums::windows {

// False: the list was deleted, or never was one.
bool is_initialised(const _PROC_THREAD_ATTRIBUTE_LIST& list) noexcept;

// What the list says of a worker; null if it says nothing.
const UMS_CREATE_THREAD_ATTRIBUTES* worker_attributes(_PROC_THREAD_ATTRIBUTE_LIST& list) noexcept;

// The address space for the stack of a new thread. The given size is what Windows commits at once,
// out of at least 1 MiB, unless the flags say that it is the whole size.
inline SIZE_T stack_to_reserve(SIZE_T bytes, DWORD flags) noexcept {
    const bool is_all = (flags & STACK_SIZE_PARAM_IS_A_RESERVATION) != 0;
    const SIZE_T least = is_all ? 64 * 1024 : 1024 * 1024;
    return bytes < least ? least : bytes;
}

// Returns a handle of the thread, or null.
HANDLE create_worker(const UMS_CREATE_THREAD_ATTRIBUTES& as, SIZE_T stack_bytes,
                     LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags,
                     LPDWORD id) noexcept;

}  // namespace ums::windows
