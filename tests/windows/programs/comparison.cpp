// SPDX-License-Identifier: MIT
// A comparison of threads, fibers and workers: affinity, time-stamp counter, performance counter,
// yields by the million divided by a thousand.
#include "create.h"
#include <intrin.h>
#include <stdio.h>
#include <vector>

static const int Yields = 1000;
static PUMS_COMPLETION_LIST g_List;
static std::vector<PUMS_CONTEXT> g_Ready;
static size_t g_Next;
static int g_Left;
static LPVOID g_Main;

static DWORD WINAPI ThreadProc(LPVOID) {
    for (int i = 0; i < Yields; ++i) SwitchToThread();
    return 0;
}
static VOID CALLBACK FiberProc(LPVOID) {
    for (;;) SwitchToFiber(g_Main);
}
static DWORD WINAPI WorkerProc(LPVOID) {
    for (int i = 0; i < Yields; ++i) UmsThreadYield(NULL);
    return 0;
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID) {
    if (reason == UmsSchedulerThreadYield) g_Ready.push_back((PUMS_CONTEXT)payload);
    while (g_Left > 0) {
        if (g_Next == g_Ready.size()) {
            g_Ready.clear();
            g_Next = 0;
            PUMS_CONTEXT context;
            if (!DequeueUmsCompletionListItems(g_List, INFINITE, &context)) __debugbreak();
            for (; context != NULL; context = GetNextUmsListItem(context)) {
                if (HasEnded(context))
                    --g_Left;
                else
                    g_Ready.push_back(context);
            }
            continue;
        }
        PUMS_CONTEXT const context = g_Ready[g_Next++];
        while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) YieldProcessor();
    }
}

template <class Run>
static void Measure(const char* name, Run run) {
    LARGE_INTEGER before, after, frequency;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&before);
    const unsigned __int64 cycles = __rdtsc();
    run();
    const bool counted = __rdtsc() > cycles;
    QueryPerformanceCounter(&after);
    const double us = (double)(after.QuadPart - before.QuadPart) * 1e6 / (double)frequency.QuadPart;
    printf("%s %s\n", name, us > 0 && counted ? "measured" : "not measured");
}

int main() {
    DWORD_PTR process = 0, system = 0;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &system) || (process & ~system) != 0)
        return 1;
    ULONG cpu = 0;
    if (!_BitScanForward64(&cpu, process)) return 2;
    if (!SetProcessAffinityMask(GetCurrentProcess(), DWORD_PTR(1) << cpu)) return 3;
    if (SetThreadAffinityMask(GetCurrentThread(), DWORD_PTR(1) << cpu) != DWORD_PTR(1) << cpu)
        return 4;
    SetThreadIdealProcessor(GetCurrentThread(), cpu);

    Measure("threads", [] {
        HANDLE threads[4];
        for (HANDLE& thread : threads) thread = CreateThread(NULL, 0, ThreadProc, NULL, 0, NULL);
        WaitForMultipleObjects(4, threads, TRUE, INFINITE);
        for (HANDLE thread : threads) CloseHandle(thread);
    });
    Measure("fibers", [] {
        g_Main = ConvertThreadToFiber(NULL);
        LPVOID fibers[4];
        for (LPVOID& fiber : fibers) fiber = CreateFiber(0, FiberProc, NULL);
        for (int i = 0; i < Yields; ++i)
            for (LPVOID fiber : fibers) SwitchToFiber(fiber);
        for (LPVOID fiber : fibers) DeleteFiber(fiber);
        ConvertFiberToThread();
    });
    Measure("workers", [] {
        CreateUmsCompletionList(&g_List);
        PUMS_CONTEXT contexts[4];
        HANDLE threads[4];
        for (int i = 0; i < 4; ++i) {
            CreateUmsThreadContext(&contexts[i]);
            threads[i] = CreateUmsWorker(g_List, contexts[i], WorkerProc, NULL, 0);
            ++g_Left;
        }
        g_Ready.reserve(64);  // The heap's lock is shared with the workers.
        UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, g_List, Schedule, NULL};
        EnterUmsSchedulingMode(&info);
        WaitForMultipleObjects(4, threads, TRUE, INFINITE);
        for (int i = 0; i < 4; ++i) CloseHandle(threads[i]), DeleteUmsThreadContext(contexts[i]);
        DeleteUmsCompletionList(g_List);
    });
    SetProcessAffinityMask(GetCurrentProcess(), process);
    return 0;
}
