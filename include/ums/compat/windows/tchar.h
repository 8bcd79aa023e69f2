/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_TCHAR_H
#define UMS_WINDOWS_TCHAR_H

/* tchar.h: text of TCHARs, wide if UNICODE (or _UNICODE) is defined. */

#if defined(_UNICODE) && !defined(UNICODE)
#define UNICODE
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "impl/base.h"
#include "impl/text.h"

typedef TCHAR _TCHAR, _TSCHAR;

#define _T(text) __TEXT(text)
#define _TEXT(text) __TEXT(text)

#ifdef UNICODE

/* `int _tmain(int argc, TCHAR *argv[])` becomes a main() that calls it. */
#ifdef __cplusplus
#define UMS_TCHAR_MAIN int main(int argc, char** argv)
#else
#define UMS_TCHAR_MAIN                      \
    extern int main(int argc, char** argv); \
    int main(int argc, char** argv)
#endif
#define _tmain(...)                                                                     \
    wmain(__VA_ARGS__);                                                                 \
    UMS_TCHAR_MAIN {                                                                    \
        return tchar_wmain((int (*)(int, wchar_t**))(void (*)(void))wmain, argc, argv); \
    }                                                                                   \
    int wmain(__VA_ARGS__)
#define _tprintf tchar_wprintf
#define _ftprintf(file, ...) tchar_fwprintf((file), __VA_ARGS__)
#define _sntprintf tchar_snwprintf
#define _tcslen wcslen
#define _tcscmp wcscmp
#define _tcsncmp wcsncmp
#define _tcsicmp wcscasecmp
#ifndef __cplusplus
extern int wcscasecmp(const wchar_t*, const wchar_t*); /* Not declared in strict C. */
#endif
#define _tcscpy wcscpy
#define _tcsncpy wcsncpy
#define _tcscat wcscat
#define _tcschr wcschr
#define _tcsrchr wcsrchr
#define _tcsstr wcsstr
#define _tcstol wcstol
#define _tcstoul wcstoul
#define _tstoi(text) ((int)wcstol((text), NULL, 10))

#else

#define _tmain main
#define _tprintf printf
#define _ftprintf fprintf
#define _sntprintf tchar_snprintf
#define _tcslen strlen
#define _tcscmp strcmp
#define _tcsncmp strncmp
#define _tcsicmp strcasecmp
#define _tcscpy strcpy
#define _tcsncpy strncpy
#define _tcscat strcat
#define _tcschr strchr
#define _tcsrchr strrchr
#define _tcsstr strstr
#define _tcstol strtol
#define _tcstoul strtoul
#define _tstoi atoi

#endif

#define _ttoi _tstoi

#endif
