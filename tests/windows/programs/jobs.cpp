// SPDX-License-Identifier: MIT
// A game engine's job system: frames of jobs with counters, a scheduler thread for each of two
// cores, free lists of interlocked entries, waiting for a counter by yielding, a frame loop that
// looks at messages and events.
#include "create.h"
#include <intrin.h>
#include <stdio.h>

struct DECLSPEC_ALIGN(16) Job {
    SLIST_ENTRY Link;
    void (*Run)(Job*);
    LONG volatile* Counter;
    int Value;
};

static SLIST_HEADER g_Free, g_Pending;
static PUMS_COMPLETION_LIST g_List;
static LONG volatile g_Quit, g_Sum, g_Workers;
static SRWLOCK g_Lock = SRWLOCK_INIT;
static PUMS_CONTEXT g_Ready[64];
static unsigned g_First, g_Last;

static void Kick(void (*run)(Job*), LONG volatile* counter, int value) {
    PSLIST_ENTRY entry = InterlockedPopEntrySList(&g_Free);
    Job* const job = CONTAINING_RECORD(entry, Job, Link);
    job->Run = run;
    job->Counter = counter;
    job->Value = value;
    InterlockedPushEntrySList(&g_Pending, &job->Link);
}

static bool RunOne() {
    PSLIST_ENTRY const entry = InterlockedPopEntrySList(&g_Pending);
    if (entry == NULL) return false;
    Job* const job = CONTAINING_RECORD(entry, Job, Link);
    job->Run(job);
    InterlockedDecrement(job->Counter);
    InterlockedPushEntrySList(&g_Free, &job->Link);
    return true;
}

static void WaitForCounter(LONG volatile* counter) {
    while (InterlockedCompareExchange(counter, 0, 0) != 0)
        if (!RunOne()) UmsThreadYield((PVOID)counter);
}

static void Leaf(Job* job) { InterlockedAdd(&g_Sum, job->Value); }
static void Branch(Job* job) {
    LONG volatile children = 2;
    Kick(Leaf, &children, job->Value);
    Kick(Leaf, &children, job->Value);
    WaitForCounter(&children);
}

static DWORD WINAPI WorkerMain(LPVOID) {
    while (!g_Quit)
        if (!RunOne()) UmsThreadYield(NULL);
    return 0;
}

static void Put(PUMS_CONTEXT context) {
    AcquireSRWLockExclusive(&g_Lock);
    g_Ready[g_Last++ % 64] = context;
    ReleaseSRWLockExclusive(&g_Lock);
}
static PUMS_CONTEXT Take() {
    AcquireSRWLockExclusive(&g_Lock);
    PUMS_CONTEXT const context = g_First != g_Last ? g_Ready[g_First++ % 64] : NULL;
    ReleaseSRWLockExclusive(&g_Lock);
    return context;
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID) {
    if (reason == UmsSchedulerThreadYield) Put((PUMS_CONTEXT)payload);
    while (InterlockedCompareExchange(&g_Workers, 0, 0) > 0) {
        PUMS_CONTEXT next = NULL;
        if (PUMS_CONTEXT const context = Take())
            while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) YieldProcessor();
        DequeueUmsCompletionListItems(g_List, 1, &next);
        while (next != NULL) {
            PUMS_CONTEXT const context = next;
            next = GetNextUmsListItem(context);
            if (HasEnded(context)) {
                DeleteUmsThreadContext(context);
                InterlockedDecrement(&g_Workers);
            } else {
                Put(context);
            }
        }
    }
}

static DWORD WINAPI Core(LPVOID mask) {
    if (mask != NULL) SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)mask);
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, g_List, Schedule, NULL};
    return EnterUmsSchedulingMode(&info) ? 0 : 1;
}

int main() {
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    static Job jobs[256];
    InitializeSListHead(&g_Free);
    InitializeSListHead(&g_Pending);
    for (Job& job : jobs) InterlockedPushEntrySList(&g_Free, &job.Link);
    CreateUmsCompletionList(&g_List);
    HANDLE threads[2 + 6];
    for (int i = 0; i < 6; ++i) {
        PUMS_CONTEXT context;
        CreateUmsThreadContext(&context);
        InterlockedIncrement(&g_Workers);
        threads[2 + i] = CreateUmsWorker(g_List, context, WorkerMain, NULL, 0);
    }
    unsigned long lowest, highest;
    _BitScanForward64(&lowest, system.dwActiveProcessorMask);
    _BitScanReverse64(&highest, system.dwActiveProcessorMask);
    threads[0] = CreateThread(NULL, 0, Core, (LPVOID)(DWORD_PTR(1) << lowest), 0, NULL);
    threads[1] = CreateThread(NULL, 0, Core, (LPVOID)(DWORD_PTR(1) << highest), 0, NULL);
    for (int frame = 0; frame < 10; ++frame) {
        LONG volatile left = 20;
        for (int i = 1; i <= 20; ++i) Kick(Branch, &left, i);
        while (InterlockedCompareExchange(&left, 0, 0) != 0) {
            MSG message;
            MsgWaitForMultipleObjects(0, NULL, FALSE, 1, QS_ALLINPUT);
            while (PeekMessage(&message, NULL, 0, 0, PM_REMOVE)) DispatchMessage(&message);
        }
    }
    InterlockedExchange(&g_Quit, 1);
    WaitForMultipleObjects(8, threads, TRUE, INFINITE);
    for (HANDLE thread : threads) CloseHandle(thread);
    DeleteUmsCompletionList(g_List);
    printf("sum %d\n", (int)g_Sum);
    return 0;
}
