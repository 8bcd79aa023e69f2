/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_SDKDDKVER_H
#define UMS_WINDOWS_SDKDDKVER_H

/* SDKDDKVer.h: the version of Windows whose calls these are: 7, the first with user-mode
 * scheduling. */

#define _WIN32_WINNT_WIN7 0x0601
#define _WIN32_WINNT_WIN8 0x0602
#define _WIN32_WINNT_WIN10 0x0A00
#ifndef _WIN32_WINNT
#define _WIN32_WINNT _WIN32_WINNT_WIN7
#endif
#ifndef WINVER
#define WINVER _WIN32_WINNT
#endif

/* A translation unit of C must declare something. */
typedef int ums_windows_version;

#endif
