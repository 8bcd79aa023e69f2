// SPDX-License-Identifier: MIT
#include "windows/last_error.hpp"

namespace {
// A worker has its own too: it runs with the thread-locals of the thread behind it.
thread_local constinit DWORD last_error = 0;
}  // namespace

DWORD GetLastError() { return last_error; }
VOID SetLastError(DWORD error) { last_error = error; }
