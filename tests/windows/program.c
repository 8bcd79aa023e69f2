/* SPDX-License-Identifier: MIT */
/* A program as it is written for Windows, in C and in C++: two workers, one scheduler. */
#include "SDKDDKVer.h"
#include <stdio.h>
#include <tchar.h>
#include <windows.h>

static PUMS_COMPLETION_LIST list;
static __declspec(thread) LONG step;
static LONG ended = 0;

static DWORD WINAPI Work(LPVOID parameter) {
    for (step = 0; step < 2; InterlockedIncrement(&step)) {
        _tprintf(_T("worker %s step %d\n"), parameter == NULL ? _T("0") : _T("1"), (int)step);
        UmsThreadYield(NULL);
    }
    return 0;
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID parameter) {
    static PUMS_CONTEXT ready[16];
    static int first, last;
    PUMS_CONTEXT context;
    UNREFERENCED_PARAMETER(parameter);
    if (reason == UmsSchedulerThreadYield) ready[last++ % 16] = (PUMS_CONTEXT)payload;
    for (;;) {
        while (first != last) {
            context = ready[first++ % 16];
            while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) YieldProcessor();
        }
        if (ended == 2) return;
        if (!DequeueUmsCompletionListItems(list, INFINITE, &context)) return;
        while (context != NULL) {
            PUMS_CONTEXT next = GetNextUmsListItem(context);
            BOOLEAN terminated = FALSE;
            QueryUmsThreadInformation(context, UmsThreadIsTerminated, &terminated,
                                      sizeof terminated, NULL);
            if (terminated) {
                DeleteUmsThreadContext(context);
                ++ended;
            } else {
                ready[last++ % 16] = context;
            }
            context = next;
        }
    }
}

int _tmain(int argc, TCHAR* argv[]) {
    HANDLE threads[2];
    int i;
    UMS_SCHEDULER_STARTUP_INFO info;
    UNREFERENCED_PARAMETER(argc);
    UNREFERENCED_PARAMETER(argv);
    if (!CreateUmsCompletionList(&list)) return 1;
    for (i = 0; i < 2; ++i) {
        UMS_CREATE_THREAD_ATTRIBUTES as;
        LPPROC_THREAD_ATTRIBUTE_LIST attributes;
        SIZE_T size = 0;
        as.UmsVersion = UMS_VERSION;
        as.UmsCompletionList = list;
        if (!CreateUmsThreadContext(&as.UmsContext)) return 2;
        InitializeProcThreadAttributeList(NULL, 1, 0, &size);
        attributes = (LPPROC_THREAD_ATTRIBUTE_LIST)HeapAlloc(GetProcessHeap(), 0, size);
        if (!InitializeProcThreadAttributeList(attributes, 1, 0, &size)) return 3;
        if (!UpdateProcThreadAttribute(attributes, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &as,
                                       sizeof as, NULL, NULL))
            return 4;
        threads[i] = CreateRemoteThreadEx(GetCurrentProcess(), NULL, 0, Work,
                                          i == 0 ? NULL : (LPVOID)&list, 0, attributes, NULL);
        if (threads[i] == NULL) return 5;
        DeleteProcThreadAttributeList(attributes);
        HeapFree(GetProcessHeap(), 0, attributes);
    }
    info.UmsVersion = UMS_VERSION;
    info.CompletionList = list;
    info.SchedulerProc = Schedule;
    info.SchedulerParam = NULL;
    if (!EnterUmsSchedulingMode(&info)) return 6;
    if (WaitForMultipleObjects(2, threads, TRUE, INFINITE) != WAIT_OBJECT_0) return 7;
    for (i = 0; i < 2; ++i) CloseHandle(threads[i]);
    _tprintf(TEXT("done: %d\n"), (int)ended);
    return DeleteUmsCompletionList(list) ? 0 : 8;
}
