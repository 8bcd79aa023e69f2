/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_SECURE_H
#define UMS_WINDOWS_IMPL_SECURE_H

/* impl/secure.h: functions of the C library that know the size of their target. Where it is too
 * small, or a pointer is NULL, the program ends with a message, as on Windows, where the handler of
 * invalid parameters does so. In C++ the size of an array need not be named. */

#include <stdarg.h>
#include <stdio.h>

#include "base.h"

typedef int errno_t;
typedef size_t rsize_t;
#define _TRUNCATE ((size_t)-1)

UMS_WIN_BEGIN

UMS_WIN(int, vsprintf_s, (char* to, size_t size, const char* format, va_list arguments));
UMS_WIN(int, sprintf_s, (char* to, size_t size, const char* format, ...));
UMS_WIN(errno_t, strcpy_s, (char* to, size_t size, const char* from));
UMS_WIN(errno_t, strcat_s, (char* to, size_t size, const char* from));
/* At most `most` characters; _TRUNCATE: as many as there is room for. */
UMS_WIN(errno_t, strncpy_s, (char* to, size_t size, const char* from, size_t most));
UMS_WIN(errno_t, memcpy_s, (void* to, size_t size, const void* from, size_t bytes));

UMS_WIN_END

#define printf_s printf
#define fprintf_s fprintf

#ifdef __cplusplus
extern "C++" {
template <size_t size>
inline int sprintf_s(char (&to)[size], const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsprintf_s(to, size, format, arguments);
    va_end(arguments);
    return written;
}
template <size_t size>
inline errno_t strcpy_s(char (&to)[size], const char* from) {
    return strcpy_s(to, size, from);
}
template <size_t size>
inline errno_t strcat_s(char (&to)[size], const char* from) {
    return strcat_s(to, size, from);
}
template <size_t size>
inline errno_t strncpy_s(char (&to)[size], const char* from, size_t most) {
    return strncpy_s(to, size, from, most);
}
}
#endif

#endif
