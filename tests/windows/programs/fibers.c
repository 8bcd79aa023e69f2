/* SPDX-License-Identifier: MIT */
/* Fibers within workers: each worker turns itself into a fiber and runs two of its own, one of
 * which blocks; thread-local data by __declspec(thread) and by slots. */
#include "create.h"
#include <stdio.h>

static PUMS_COMPLETION_LIST list;
static DWORD slot;
static LONG volatile sum;
static int left = 2;
static __declspec(thread) LPVOID main_fiber;

static VOID CALLBACK Step(__in LPVOID amount) {
    for (;;) {
        InterlockedAdd(&sum, (LONG)(INT_PTR)amount * (LONG)(INT_PTR)TlsGetValue(slot));
        if ((INT_PTR)amount == 2) Sleep(1);
        SwitchToFiber(main_fiber);
    }
}

static DWORD WINAPI Work(__in LPVOID factor) {
    LPVOID fibers[2];
    int i;
    TlsSetValue(slot, factor);
    main_fiber = ConvertThreadToFiber(NULL);
    for (i = 0; i < 2; ++i) fibers[i] = CreateFiber(0, Step, (LPVOID)(INT_PTR)(i + 1));
    for (i = 0; i < 10; ++i) {
        SwitchToFiber(fibers[i % 2]);
        UmsThreadYield(NULL);
    }
    for (i = 0; i < 2; ++i) DeleteFiber(fibers[i]);
    ConvertFiberToThread();
    return 0;
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID parameter) {
    static PUMS_CONTEXT ready[16];
    static unsigned first, last;
    UNREFERENCED_PARAMETER(parameter);
    if (reason == UmsSchedulerThreadYield) ready[last++ % 16] = (PUMS_CONTEXT)payload;
    while (left > 0) {
        PUMS_CONTEXT next = NULL;
        if (first != last) {
            PUMS_CONTEXT context = ready[first++ % 16];
            while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) _mm_pause();
        }
        DequeueUmsCompletionListItems(list, INFINITE, &next);
        for (; next != NULL; next = GetNextUmsListItem(next)) {
            if (HasEnded(next))
                --left;
            else
                ready[last++ % 16] = next;
        }
    }
}

int main(void) {
    PUMS_CONTEXT contexts[2];
    HANDLE threads[2];
    UMS_SCHEDULER_STARTUP_INFO info;
    int i;
    slot = TlsAlloc();
    CreateUmsCompletionList(&list);
    for (i = 0; i < 2; ++i) {
        CreateUmsThreadContext(&contexts[i]);
        threads[i] =
            CreateUmsWorker(list, contexts[i], Work, (LPVOID)(INT_PTR)(i == 0 ? 1 : 100), 0);
    }
    info.UmsVersion = UMS_VERSION;
    info.CompletionList = list;
    info.SchedulerProc = Schedule;
    info.SchedulerParam = NULL;
    if (!EnterUmsSchedulingMode(&info)) return 1;
    WaitForMultipleObjects(2, threads, TRUE, INFINITE);
    for (i = 0; i < 2; ++i) CloseHandle(threads[i]), DeleteUmsThreadContext(contexts[i]);
    DeleteUmsCompletionList(list);
    TlsFree(slot);
    printf("sum %d\n", (int)sum);
    return 0;
}
