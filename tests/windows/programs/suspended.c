/* SPDX-License-Identifier: MIT */
/* Workers that are created suspended and resumed in another order, what the system says of threads,
 * exit codes, contexts that are used again. */
#include "create.h"
#include <process.h>
#include <stdio.h>

static PUMS_COMPLETION_LIST list;
static PUMS_CONTEXT contexts[3];
static HANDLE threads[3];
static int order[6], ran, left;

static BOOL IsKind(__in HANDLE thread, __in BOOL scheduler) {
    UMS_SYSTEM_THREAD_INFORMATION information;
    ZeroMemory(&information, sizeof(information));
    information.UmsVersion = UMS_VERSION;
    if (scheduler)
        information.IsUmsSchedulerThread = 1;
    else
        information.IsUmsWorkerThread = 1;
    return GetUmsSystemThreadInformation(thread, &information);
}

static DWORD WINAPI Work(__in LPVOID number) {
    order[ran++] = (int)(INT_PTR)number;
    if (!IsKind(GetCurrentThread(), FALSE)) return 99;
    if ((INT_PTR)number == 1) ExitThread(41);
    return 40 + (DWORD)(INT_PTR)number;
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID parameter) {
    PUMS_CONTEXT context;
    UNREFERENCED_PARAMETER(payload);
    UNREFERENCED_PARAMETER(parameter);
    if (reason == UmsSchedulerStartup && !IsKind(GetCurrentThread(), TRUE)) return;
    while (left > 0) {
        PUMS_CONTEXT next;
        if (!DequeueUmsCompletionListItems(list, INFINITE, &context)) return;
        for (; context != NULL; context = next) {
            BOOLEAN suspended = TRUE;
            next = GetNextUmsListItem(context);
            if (HasEnded(context)) {
                int i;
                --left;
                for (i = 0; i < 3; ++i) /* Takes the next in the order in which they end. */
                    if (context == contexts[i] && i > 0) ResumeThread(threads[i - 1]);
                continue;
            }
            QueryUmsThreadInformation(context, UmsThreadIsSuspended, &suspended, sizeof(suspended),
                                      NULL);
            if (suspended || next != NULL) __debugbreak(); /* One is resumed at a time. */
            while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) YieldProcessor();
        }
    }
}

int main(void) {
    int round, i;
    UMS_SCHEDULER_STARTUP_INFO info;
    CreateUmsCompletionList(&list);
    for (i = 0; i < 3; ++i)
        if (!CreateUmsThreadContext(&contexts[i])) return 1;
    for (round = 0; round < 2; ++round) {
        for (i = 0; i < 3; ++i) {
            threads[i] =
                CreateUmsWorker(list, contexts[i], Work, (LPVOID)(INT_PTR)i, CREATE_SUSPENDED);
            if (threads[i] == NULL || DeleteUmsThreadContext(contexts[i])) return 2;
        }
        left = 3;
        if (ResumeThread(threads[2]) != 1) return 3;
        info.UmsVersion = UMS_VERSION;
        info.CompletionList = list;
        info.SchedulerProc = Schedule;
        info.SchedulerParam = NULL;
        if (!EnterUmsSchedulingMode(&info)) return 4;
        for (i = 0; i < 3; ++i) {
            DWORD code = 0;
            WaitForSingleObject(threads[i], INFINITE);
            if (!GetExitCodeThread(threads[i], &code) || code != 40 + (DWORD)i) return 5;
            CloseHandle(threads[i]);
        }
    }
    for (i = 0; i < 3; ++i) DeleteUmsThreadContext(contexts[i]);
    DeleteUmsCompletionList(list);
    for (i = 0; i < 6; ++i) printf("%d", order[i]);
    printf("\n");
    return 0;
}
