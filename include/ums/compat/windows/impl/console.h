/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_CONSOLE_H
#define UMS_WINDOWS_IMPL_CONSOLE_H

/* impl/console.h: the three standard streams. Narrow text is UTF-8. */

#include "base.h"

#define STD_INPUT_HANDLE ((DWORD)-10)
#define STD_OUTPUT_HANDLE ((DWORD)-11)
#define STD_ERROR_HANDLE ((DWORD)-12)

UMS_WIN_BEGIN

/* A pseudo-handle, for the functions below only. */
UMS_WIN(HANDLE, GetStdHandle, (DWORD which));
/* Write all of it, to a terminal or not. */
UMS_WIN(BOOL, WriteConsoleA,
        (HANDLE to, const VOID* text, DWORD characters, LPDWORD written, LPVOID reserved));
UMS_WIN(BOOL, WriteConsoleW,
        (HANDLE to, const VOID* text, DWORD characters, LPDWORD written, LPVOID reserved));

UMS_WIN_END

#define WriteConsole UMS_WIN_TEXT(WriteConsole)

#endif
