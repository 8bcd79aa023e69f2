/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_PROCESS_H
#define UMS_WINDOWS_PROCESS_H

/* process.h: the C library's way to start a thread on Windows. */

#include "windows.h"

UMS_WIN_BEGIN

/* 0: failed; the reason is in GetLastError(), not in errno. */
UMS_WIN(uintptr_t, _beginthreadex,
        (void* attributes, unsigned stack_bytes, unsigned(__stdcall* start)(void*), void* argument,
         unsigned flags, unsigned* id));
UMS_WIN(DECLSPEC_NORETURN void, _endthreadex, (unsigned code));

UMS_WIN_END

#endif
