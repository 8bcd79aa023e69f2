// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
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
    // The CPUs this process may use.
    cpu_set_t usable;
    CPU_ZERO(&usable);
    ::sched_getaffinity(::getpid(), sizeof usable, &usable);
    info->dwNumberOfProcessors = static_cast<DWORD>(CPU_COUNT(&usable));
    for (unsigned cpu = 0; cpu < 64; ++cpu)
        if (CPU_ISSET(cpu, &usable)) info->dwActiveProcessorMask |= DWORD_PTR{1} << cpu;
}

DWORD GetCurrentProcessorNumber() {
    unsigned cpu = 0;
    ::getcpu(&cpu, nullptr);
    return cpu;
}

VOID ExitProcess(UINT code) { std::exit(static_cast<int>(code)); }

BOOL IsDebuggerPresent() {
    const uninterrupted section;
    std::FILE* const status = std::fopen("/proc/self/status", "re");
    if (status == nullptr) return FALSE;
    char line[128];
    int tracer = 0;
    while (std::fgets(line, sizeof line, status) != nullptr)
        if (std::sscanf(line, "TracerPid: %d", &tracer) == 1) break;
    std::fclose(status);
    return tracer != 0 ? TRUE : FALSE;
}
