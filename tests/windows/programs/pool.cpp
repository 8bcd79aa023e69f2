// SPDX-License-Identifier: MIT
// The thread pool beside a scheduler: work items signal workers that wait, a work object counts
// what they did, a watchdog on the process's own timer queue sees the scheduler's progress.
#include "create.h"
#include <stdio.h>

static PUMS_COMPLETION_LIST g_List;
static HANDLE g_Events[4], g_Seen;
static LONG volatile g_Activations, g_Counted, g_Simple;
static int g_Left = 4;

static DWORD WINAPI Signal(LPVOID event) { return SetEvent(event) ? 0 : 1; }
static VOID CALLBACK Count(PTP_CALLBACK_INSTANCE, PVOID by, PTP_WORK) {
    InterlockedAdd(&g_Counted, *static_cast<LONG*>(by));
}
static VOID CALLBACK Simple(PTP_CALLBACK_INSTANCE, PVOID) {
    InterlockedIncrement(&g_Simple), SetEvent(g_Seen);
}
static VOID CALLBACK Watch(PVOID seen, BOOLEAN fired) {
    if (fired && g_Activations > 0) SetEvent(seen);
}

static DWORD WINAPI Work(LPVOID given) {
    const PTP_WORK work = static_cast<PTP_WORK>(given);
    static LONG volatile number;
    const LONG mine = InterlockedIncrement(&number) - 1;
    QueueUserWorkItem(Signal, g_Events[mine], WT_EXECUTEDEFAULT);
    WaitForSingleObject(g_Events[mine], INFINITE);
    for (int i = 0; i < 5; ++i) SubmitThreadpoolWork(work);
    return 0;
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON, ULONG_PTR, PVOID) {
    InterlockedIncrement(&g_Activations);
    static PUMS_CONTEXT ready[16];
    static unsigned first, last;
    while (g_Left > 0) {
        while (first != last) {
            PUMS_CONTEXT const context = ready[first++ % 16];
            while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) YieldProcessor();
        }
        PUMS_CONTEXT next = nullptr;
        DequeueUmsCompletionListItems(g_List, INFINITE, &next);
        for (; next != nullptr; next = GetNextUmsListItem(next))
            if (HasEnded(next))
                --g_Left;
            else
                ready[last++ % 16] = next;
    }
}

int main() {
    LONG by = 3;
    const PTP_WORK work = CreateThreadpoolWork(Count, &by, nullptr);
    g_Seen = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    CreateUmsCompletionList(&g_List);
    PUMS_CONTEXT contexts[4];
    HANDLE threads[4];
    for (int i = 0; i < 4; ++i) {
        g_Events[i] = CreateEvent(nullptr, TRUE, FALSE, nullptr);
        CreateUmsThreadContext(&contexts[i]);
        threads[i] = CreateUmsWorker(g_List, contexts[i], Work, work, 0);
    }
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, g_List, Schedule, nullptr};
    if (!EnterUmsSchedulingMode(&info)) return 1;
    WaitForMultipleObjects(4, threads, TRUE, INFINITE);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    const LONG counted = g_Counted;
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, TRUE);
    CloseThreadpoolWork(work);
    if (!TrySubmitThreadpoolCallback(Simple, nullptr, nullptr)) return 2;
    WaitForSingleObject(g_Seen, INFINITE);
    HANDLE watchdog = nullptr;
    if (!CreateTimerQueueTimer(&watchdog, nullptr, Watch, g_Seen, 0, 2, WT_EXECUTELONGFUNCTION))
        return 3;
    WaitForSingleObject(g_Seen, INFINITE);
    const HANDLE gone = CreateEvent(nullptr, TRUE, FALSE, nullptr);
    if (!DeleteTimerQueueTimer(nullptr, watchdog, gone) && GetLastError() != ERROR_IO_PENDING)
        return 4;
    WaitForSingleObject(gone, INFINITE);
    CloseHandle(gone);
    const HANDLE empty = CreateTimerQueue();
    if (!DeleteTimerQueue(empty)) return 5;
    for (int i = 0; i < 4; ++i)
        CloseHandle(threads[i]), CloseHandle(g_Events[i]), DeleteUmsThreadContext(contexts[i]);
    CloseHandle(g_Seen);
    DeleteUmsCompletionList(g_List);
    printf("counted %d, simple %d\n", (int)counted, (int)g_Simple);
    return 0;
}
