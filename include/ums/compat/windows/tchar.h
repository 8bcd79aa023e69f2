/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_TCHAR_H
#define UMS_WINDOWS_TCHAR_H

/* tchar.h: text of TCHARs, wide if UNICODE (or _UNICODE) is defined. _tmain() and _tprintf() and
 * its kin are narrow only: there is no wide main(), and wide formats mean other things here. */

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
#define UMS_WIN_TCS(name) wcs##name
#ifndef __cplusplus
extern int wcscasecmp(const wchar_t*, const wchar_t*); /* Not declared in strict C. */
#endif
#else
#define UMS_WIN_TCS(name) str##name
#define _tmain main
#define _tprintf printf
#define _ftprintf fprintf
#endif

#define _tcslen UMS_WIN_TCS(len)
#define _tcscmp UMS_WIN_TCS(cmp)
#define _tcsncmp UMS_WIN_TCS(ncmp)
#define _tcsicmp UMS_WIN_TCS(casecmp)
#define _tcscpy UMS_WIN_TCS(cpy)
#define _tcsncpy UMS_WIN_TCS(ncpy)
#define _tcscat UMS_WIN_TCS(cat)
#define _tcschr UMS_WIN_TCS(chr)
#define _tcsrchr UMS_WIN_TCS(rchr)
#define _tcsstr UMS_WIN_TCS(str)
#define _tcstol UMS_WIN_TCS(tol)
#define _tcstoul UMS_WIN_TCS(toul)
#define _tstoi(text) ((int)_tcstol((text), NULL, 10))
#define _ttoi _tstoi

#endif
