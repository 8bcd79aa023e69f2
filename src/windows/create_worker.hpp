// SPDX-License-Identifier: MIT
#pragma once

// windows/create_worker.hpp: threads that are made with PROC_THREAD_ATTRIBUTE_UMS_THREAD.

#include "ums/compat/windows/windows.h"

namespace ums::windows {

// What the list says of a worker; null: nothing.
const UMS_CREATE_THREAD_ATTRIBUTES* worker_attributes(LPPROC_THREAD_ATTRIBUTE_LIST list) noexcept;

// A handle of the thread, or null.
HANDLE create_worker(const UMS_CREATE_THREAD_ATTRIBUTES& as, SIZE_T stack_bytes,
                     LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags,
                     LPDWORD id) noexcept;

}  // namespace ums::windows
