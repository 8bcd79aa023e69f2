// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <string>
#include <unistd.h>

#include "ums/compat/windows/windows.h"
#include "windows/guard.hpp"

using namespace ums::windows;

VOID GetSystemInfo(LPSYSTEM_INFO info) {
    *info = {};
#if defined(__x86_64__)
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_AMD64;
#else
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_ARM64;
#endif
    info->dwPageSize = static_cast<DWORD>(::sysconf(_SC_PAGESIZE));
    info->lpMinimumApplicationAddress = reinterpret_cast<LPVOID>(0x10000);
    info->lpMaximumApplicationAddress = reinterpret_cast<LPVOID>(0x7FFFFFFEFFFF);
    info->dwAllocationGranularity = 64 * 1024;
    DWORD_PTR system = 0;  // The CPUs this process may use.
    GetProcessAffinityMask(GetCurrentProcess(), &info->dwActiveProcessorMask, &system);
    info->dwNumberOfProcessors =
        static_cast<DWORD>(__builtin_popcountll(info->dwActiveProcessorMask));
}

DWORD GetCurrentProcessorNumber() {
    unsigned cpu = 0;
    ::getcpu(&cpu, nullptr);
    return cpu;
}

VOID ExitProcess(UINT code) { std::exit(static_cast<int>(code)); }

BOOL IsDebuggerPresent() {
    const uninterrupted section;
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("TracerPid:")) return line != "TracerPid:\t0" ? TRUE : FALSE;
    return FALSE;
}
