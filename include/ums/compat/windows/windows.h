/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_H
#define UMS_WINDOWS_H

/* windows.h: what programs that use Windows' user-mode scheduling need of <windows.h>, on libums.
 *
 * Put this folder on the include path and link with libums; nothing in the program changes. C11 and
 * C++17, gcc and clang. docs/windows-ums.md says, call by call, what is supported, what differs and
 * what is missing.
 *
 * Names:     every function is declared under its Windows name and lives in the library as
 *            ums_win_NAME, so linking libums never defines a global Sleep.
 * Types:     LLP64 as on Windows: LONG, ULONG and DWORD have 32 bits. WCHAR is the compiler's
 *            wchar_t (32 bits).
 * Errors:    FALSE, NULL or the value that Windows documents; the reason is in GetLastError(),
 *            which is each thread's own, and each worker's.
 * Blocking:  a call that waits tells the scheduler of a calling worker (UmsSchedulerThreadBlocked);
 *            one that need not wait does not.
 * Threads:   for kernel threads, workers and Windows fibers. Not for libums's own fibers, which are
 *            not threads.
 */

#include "impl/base.h"
#include "impl/console.h"
#include "impl/errors.h"
#include "impl/fibers.h"
#include "impl/handles.h"
#include "impl/interlocked.h"
#include "impl/intrinsics.h"
#include "impl/loader.h"
#include "impl/locks.h"
#include "impl/memory.h"
#include "impl/messages.h"
#include "impl/pool.h"
#include "impl/secure.h"
#include "impl/system.h"
#include "impl/text.h"
#include "impl/threads.h"
#include "impl/ums.h"

#endif
