/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_TEXT_H
#define UMS_WINDOWS_IMPL_TEXT_H

/* impl/text.h: messages of errors, output for the debugger. Narrow text is UTF-8. */

#include "base.h"

#define FORMAT_MESSAGE_ALLOCATE_BUFFER 0x00000100u
#define FORMAT_MESSAGE_IGNORE_INSERTS 0x00000200u
#define FORMAT_MESSAGE_FROM_SYSTEM 0x00001000u
#define FORMAT_MESSAGE_MAX_WIDTH_MASK 0x000000FFu

#define LANG_NEUTRAL 0x00
#define LANG_ENGLISH 0x09
#define SUBLANG_DEFAULT 0x01
#define SUBLANG_ENGLISH_US 0x01
#define MAKELANGID(primary, sub) ((WORD)((((WORD)(sub)) << 10) | (WORD)(primary)))

UMS_WIN_BEGIN

/* The text, in English, of an error: FROM_SYSTEM. It has no inserts. */
UMS_WIN(DWORD, FormatMessageA,
        (DWORD flags, LPCVOID source, DWORD message, DWORD language, LPSTR buffer, DWORD size,
         va_list* arguments));
UMS_WIN(DWORD, FormatMessageW,
        (DWORD flags, LPCVOID source, DWORD message, DWORD language, LPWSTR buffer, DWORD size,
         va_list* arguments));
/* To standard error, if the variable UMS_DEBUG_OUTPUT is 1 or a debugger is attached. */
UMS_WIN(VOID, OutputDebugStringA, (LPCSTR text));
UMS_WIN(VOID, OutputDebugStringW, (LPCWSTR text));

UMS_WIN_END

#define FormatMessage UMS_WIN_TEXT(FormatMessage)
#define OutputDebugString UMS_WIN_TEXT(OutputDebugString)

#endif
