/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_TEXT_H
#define UMS_WINDOWS_IMPL_TEXT_H

/* impl/text.h: messages of errors, output for the debugger. Narrow text is UTF-8. */

#include "base.h"

#define FORMAT_MESSAGE_ALLOCATE_BUFFER 0x00000100u
#define FORMAT_MESSAGE_IGNORE_INSERTS 0x00000200u
#define FORMAT_MESSAGE_FROM_STRING 0x00000400u
#define FORMAT_MESSAGE_FROM_HMODULE 0x00000800u
#define FORMAT_MESSAGE_FROM_SYSTEM 0x00001000u
#define FORMAT_MESSAGE_ARGUMENT_ARRAY 0x00002000u
#define FORMAT_MESSAGE_MAX_WIDTH_MASK 0x000000FFu

#define LANG_NEUTRAL 0x00
#define LANG_ENGLISH 0x09
#define SUBLANG_DEFAULT 0x01
#define SUBLANG_ENGLISH_US 0x01
#define MAKELANGID(primary, sub) ((WORD)((((WORD)(sub)) << 10) | (WORD)(primary)))

UMS_WIN_BEGIN

/* The text, in English, of an error, or a text of the caller's; inserts (%1) are not filled in:
 * INVALID_PARAMETER unless IGNORE_INSERTS is given where a text has some. */
UMS_WIN(DWORD, FormatMessageA,
        (DWORD flags, LPCVOID source, DWORD message, DWORD language, LPSTR buffer, DWORD size,
         va_list* arguments));
UMS_WIN(DWORD, FormatMessageW,
        (DWORD flags, LPCVOID source, DWORD message, DWORD language, LPWSTR buffer, DWORD size,
         va_list* arguments));
/* To standard error, if the variable UMS_DEBUG_OUTPUT is 1 or a debugger is attached. */
UMS_WIN(VOID, OutputDebugStringA, (LPCSTR text));
UMS_WIN(VOID, OutputDebugStringW, (LPCWSTR text));

/* What tchar.h uses. As on Windows: -1 if the text is cut, and no zero if there is no room for it. */
UMS_WIN(int, tchar_snprintf, (char* into, size_t size, const char* format, ...))
__attribute__((format(printf, 3, 4)));
/* When UNICODE is defined: formats by Windows' rules (%s is wide text), in UTF-8. */
UMS_WIN(int, tchar_wprintf, (const wchar_t* format, ...));
UMS_WIN(int, tchar_fwprintf, (void* file, const wchar_t* format, ...));
UMS_WIN(int, tchar_snwprintf, (wchar_t * into, size_t size, const wchar_t* format, ...));
UMS_WIN(int, tchar_wmain, (int (*wmain)(int, wchar_t**), int argc, char** argv)); /* Its result. */

UMS_WIN_END

#ifdef UNICODE
#define FormatMessage FormatMessageW
#define OutputDebugString OutputDebugStringW
#else
#define FormatMessage FormatMessageA
#define OutputDebugString OutputDebugStringA
#endif

#endif
