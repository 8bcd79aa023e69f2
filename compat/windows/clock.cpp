// SPDX-License-Identifier: MIT
#include <ctime>
#include <sched.h>

#include "base/futex.hpp"
#include "ums/compat/windows/windows.h"
#include "windows/guard.hpp"
#include "windows/object.hpp"
#include "windows/suspension.hpp"

using namespace ums;
using namespace ums::windows;

VOID Sleep(DWORD milliseconds) { SleepEx(milliseconds, FALSE); }

DWORD SleepEx(DWORD milliseconds, BOOL) {
    if (milliseconds == 0) {
        ::sched_yield();  // Gives up the rest of the time slice, as on Windows; this is not a wait.
        return 0;
    }
    const compat::nanoseconds limit = deadline_of(milliseconds);
    const std::uint32_t nothing = 0;
    const blocking wait;
    while (compat::futex_wait(&nothing, 0, limit)) obey_late_signals();
    return 0;
}

BOOL QueryPerformanceCounter(LARGE_INTEGER* count) {
    count->QuadPart = compat::now();
    return TRUE;
}
BOOL QueryPerformanceFrequency(LARGE_INTEGER* per_second) {
    per_second->QuadPart = 1'000'000'000;
    return TRUE;
}

ULONGLONG GetTickCount64() { return static_cast<ULONGLONG>(compat::now() / 1'000'000); }
DWORD GetTickCount() { return static_cast<DWORD>(GetTickCount64()); }

VOID GetSystemTimeAsFileTime(LPFILETIME time) {
    timespec now;
    ::clock_gettime(CLOCK_REALTIME, &now);
    // The start of the Unix epoch, in units of 100 ns since 1601.
    constexpr unsigned long from_1601 = 11'644'473'600;
    const unsigned long ticks = (static_cast<unsigned long>(now.tv_sec) + from_1601) * 10'000'000 +
                                static_cast<unsigned long>(now.tv_nsec) / 100;
    time->dwLowDateTime = static_cast<DWORD>(ticks);
    time->dwHighDateTime = static_cast<DWORD>(ticks >> 32);
}
