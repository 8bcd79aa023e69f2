/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_SYSTEM_H
#define UMS_WINDOWS_IMPL_SYSTEM_H

/* impl/system.h: time, the machine, the process. */

#include "base.h"

typedef struct _SYSTEM_INFO {
    __extension__ union {
        DWORD dwOemId;
        __extension__ struct {
            WORD wProcessorArchitecture;
            WORD wReserved;
        };
    };
    DWORD dwPageSize;
    LPVOID lpMinimumApplicationAddress;
    LPVOID lpMaximumApplicationAddress;
    DWORD_PTR dwActiveProcessorMask;
    DWORD dwNumberOfProcessors;
    DWORD dwProcessorType;
    DWORD dwAllocationGranularity;
    WORD wProcessorLevel;
    WORD wProcessorRevision;
} SYSTEM_INFO, *LPSYSTEM_INFO;

#define PROCESSOR_ARCHITECTURE_AMD64 9
#define PROCESSOR_ARCHITECTURE_ARM64 12

UMS_WIN_BEGIN

UMS_WIN(VOID, Sleep, (DWORD milliseconds));
UMS_WIN(DWORD, SleepEx, (DWORD milliseconds, BOOL alertable));
UMS_WIN(BOOL, QueryPerformanceCounter, (LARGE_INTEGER * count)); /* Nanoseconds. */
UMS_WIN(BOOL, QueryPerformanceFrequency, (LARGE_INTEGER * per_second));
UMS_WIN(DWORD, GetTickCount, (void));
UMS_WIN(ULONGLONG, GetTickCount64, (void));
UMS_WIN(VOID, GetSystemTimeAsFileTime, (LPFILETIME time));
UMS_WIN(VOID, GetSystemInfo, (LPSYSTEM_INFO info));
UMS_WIN(DWORD, GetCurrentProcessorNumber, (void));
UMS_WIN(DECLSPEC_NORETURN VOID, ExitProcess, (UINT code));
UMS_WIN(BOOL, IsDebuggerPresent, (void));

UMS_WIN_END

#endif
