// SPDX-License-Identifier: MIT
// In the manner of the samples of the Windows 7 time: C, annotated prototypes in the old spelling,
// _tmain, memory from the process heap, the list's event, errors by FormatMessage.
#include "SDKDDKVer.h"
#include <stdio.h>
#include <tchar.h>
#include <windows.h>

#if !defined(_AMD64_) && !defined(_ARM64_)
#error "User-mode scheduling needs a 64-bit machine."
#endif

#define WORKERS 4

typedef struct _WORKER_ITEM {
    LIST_ENTRY Link;
    PUMS_CONTEXT Context;
    DWORD Number;
} WORKER_ITEM, *PWORKER_ITEM;

static PUMS_COMPLETION_LIST g_List;
static LIST_ENTRY g_Ready;
static DWORD g_Ended;
static CRITICAL_SECTION g_Output;

static VOID ReportError(__in LPCTSTR Function) {
    LPTSTR text = NULL;
    DWORD error = GetLastError();
    FormatMessage(
        FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS,
        NULL, error, MAKELANGID(LANG_NEUTRAL, SUBLANG_DEFAULT), (LPTSTR)&text, 0, NULL);
    _ftprintf(stderr, _T("%s failed (%u): %s"), Function, (unsigned)error,
              text != NULL ? text : _T("?\n"));
    LocalFree(text);
}

static DWORD WINAPI WorkerMain(__in_opt LPVOID Parameter) {
    PWORKER_ITEM item = (PWORKER_ITEM)Parameter;
    int step;
    for (step = 0; step < 3; ++step) {
        EnterCriticalSection(&g_Output);
        _tprintf(_T("worker %u, step %d\n"), (unsigned)item->Number, step);
        LeaveCriticalSection(&g_Output);
        UmsThreadYield(item);
    }
    return item->Number;
}

static VOID Enqueue(__inout PWORKER_ITEM Item) {
    Item->Link.Flink = &g_Ready;
    Item->Link.Blink = g_Ready.Blink;
    g_Ready.Blink->Flink = &Item->Link;
    g_Ready.Blink = &Item->Link;
}

static PWORKER_ITEM Dequeue(VOID) {
    PLIST_ENTRY first = g_Ready.Flink;
    if (first == &g_Ready) return NULL;
    first->Flink->Blink = &g_Ready;
    g_Ready.Flink = first->Flink;
    return CONTAINING_RECORD(first, WORKER_ITEM, Link);
}

static VOID NTAPI SchedulerProc(__in UMS_SCHEDULER_REASON Reason, __in ULONG_PTR Payload,
                                __in PVOID Parameter) {
    HANDLE event = NULL;
    UNREFERENCED_PARAMETER(Payload);
    if (Reason == UmsSchedulerThreadYield) Enqueue((PWORKER_ITEM)Parameter);
    for (;;) {
        PUMS_CONTEXT context = NULL;
        PWORKER_ITEM item = Dequeue();
        while (item != NULL) {
            while (!ExecuteUmsThread(item->Context) && GetLastError() == ERROR_RETRY)
                YieldProcessor();
            item = Dequeue();
        }
        if (g_Ended == WORKERS) return;
        if (event == NULL && !GetUmsCompletionListEvent(g_List, &event))
            ReportError(_T("GetUmsCompletionListEvent"));
        if (!DequeueUmsCompletionListItems(g_List, 0, &context))
            ReportError(_T("DequeueUmsCompletionListItems"));
        if (context == NULL) WaitForSingleObject(event, INFINITE);
        while (context != NULL) {
            PUMS_CONTEXT next = GetNextUmsListItem(context);
            BOOLEAN terminated = FALSE;
            PVOID user = NULL;
            QueryUmsThreadInformation(context, UmsThreadIsTerminated, &terminated,
                                      sizeof(terminated), NULL);
            QueryUmsThreadInformation(context, UmsThreadUserContext, &user, sizeof(user), NULL);
            if (terminated)
                ++g_Ended;
            else
                Enqueue((PWORKER_ITEM)user);
            context = next;
        }
        CloseHandle(event);
        event = NULL;
    }
}

static HANDLE CreateWorker(__inout PWORKER_ITEM Item) {
    UMS_CREATE_THREAD_ATTRIBUTES ums;
    LPPROC_THREAD_ATTRIBUTE_LIST attributes = NULL;
    SIZE_T size = 0;
    HANDLE thread;
    if (!CreateUmsThreadContext(&Item->Context)) return NULL;
    SetUmsThreadInformation(Item->Context, UmsThreadUserContext, &Item, sizeof(Item));
    ums.UmsVersion = UMS_VERSION;
    ums.UmsContext = Item->Context;
    ums.UmsCompletionList = g_List;
    InitializeProcThreadAttributeList(NULL, 1, 0, &size);
    attributes = (LPPROC_THREAD_ATTRIBUTE_LIST)HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, size);
    if (attributes == NULL || !InitializeProcThreadAttributeList(attributes, 1, 0, &size))
        return NULL;
    UpdateProcThreadAttribute(attributes, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &ums, sizeof(ums),
                              NULL, NULL);
    thread = CreateRemoteThreadEx(GetCurrentProcess(), NULL, 0, WorkerMain, Item,
                                  STACK_SIZE_PARAM_IS_A_RESERVATION, attributes, NULL);
    DeleteProcThreadAttributeList(attributes);
    HeapFree(GetProcessHeap(), 0, attributes);
    return thread;
}

int _tmain(int argc, _TCHAR* argv[]) {
    UMS_SCHEDULER_STARTUP_INFO info;
    WORKER_ITEM items[WORKERS];
    HANDLE threads[WORKERS];
    DWORD i;
    UNREFERENCED_PARAMETER(argc);
    UNREFERENCED_PARAMETER(argv);
    g_Ready.Flink = g_Ready.Blink = &g_Ready;
    InitializeCriticalSectionEx(&g_Output, 4000, CRITICAL_SECTION_NO_DEBUG_INFO);
    if (!CreateUmsCompletionList(&g_List)) return ReportError(_T("CreateUmsCompletionList")), 1;
    for (i = 0; i < WORKERS; ++i) {
        items[i].Number = i;
        if ((threads[i] = CreateWorker(&items[i])) == NULL)
            return ReportError(_T("CreateRemoteThreadEx")), 2;
    }
    info.UmsVersion = UMS_VERSION;
    info.CompletionList = g_List;
    info.SchedulerProc = SchedulerProc;
    info.SchedulerParam = NULL;
    if (!EnterUmsSchedulingMode(&info)) return ReportError(_T("EnterUmsSchedulingMode")), 3;
    WaitForMultipleObjects(WORKERS, threads, TRUE, INFINITE);
    for (i = 0; i < WORKERS; ++i) {
        DWORD code = STILL_ACTIVE;
        if (!GetExitCodeThread(threads[i], &code) || code != i) return 4;
        CloseHandle(threads[i]);
        DeleteUmsThreadContext(items[i].Context);
    }
    DeleteUmsCompletionList(g_List);
    DeleteCriticalSection(&g_Output);
    _tprintf(_T("done\n"));
    return 0;
}
