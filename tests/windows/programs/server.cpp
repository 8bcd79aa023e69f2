// SPDX-License-Identifier: MIT
// A server whose handlers block: two scheduler threads share a list and wait for its event or for
// the end; a timer-queue timer brings requests through a semaphore, handlers sleep and wait for
// events.
#include "create.h"
#include <deque>
#include <stdio.h>

static const LONG Requests = 40;
static PUMS_COMPLETION_LIST g_List;
static HANDLE g_Request, g_Stop, g_Tick;
static LONG volatile g_Brought, g_Served, g_Handlers = 6;

static VOID CALLBACK Bring(PVOID, BOOLEAN) {
    if (InterlockedIncrement(&g_Brought) <= Requests) ReleaseSemaphore(g_Request, 1, nullptr);
    SetEvent(g_Tick);
}

static DWORD WINAPI Handle(LPVOID) {
    const HANDLE both[] = {g_Stop, g_Request};
    while (WaitForMultipleObjects(2, both, FALSE, INFINITE) == WAIT_OBJECT_0 + 1) {
        Sleep(1);
        WaitForSingleObject(g_Tick, 10);
        if (InterlockedIncrement(&g_Served) == Requests) SetEvent(g_Stop);
    }
    return 0;
}

struct Loop {
    std::deque<PUMS_CONTEXT> Ready;
    int Blocked = 0;
};

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID parameter) {
    static thread_local Loop* self;
    if (reason == UmsSchedulerStartup) self = static_cast<Loop*>(parameter);
    if (reason == UmsSchedulerThreadBlocked) self->Blocked += payload & 1;
    if (reason == UmsSchedulerThreadYield)
        self->Ready.push_back(reinterpret_cast<PUMS_CONTEXT>(payload));
    HANDLE ready = nullptr;
    if (!GetUmsCompletionListEvent(g_List, &ready)) return;
    while (InterlockedCompareExchange(&g_Handlers, 0, 0) > 0) {
        PUMS_CONTEXT next = nullptr;
        if (!DequeueUmsCompletionListItems(g_List, 0, &next)) break;
        while (next != nullptr) {
            PUMS_CONTEXT const context = next;
            next = GetNextUmsListItem(context);
            if (HasEnded(context))
                InterlockedDecrement(&g_Handlers);
            else
                self->Ready.push_back(context);
        }
        if (!self->Ready.empty()) {
            PUMS_CONTEXT const context = self->Ready.front();
            self->Ready.pop_front();
            CloseHandle(ready);
            while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) YieldProcessor();
            __debugbreak();
        }
        WaitForSingleObject(ready, 20);
    }
    CloseHandle(ready);
}

static DWORD WINAPI Run(LPVOID blocked) {
    Loop loop;
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, g_List, Schedule, &loop};
    if (!EnterUmsSchedulingMode(&info)) return 1;
    *static_cast<int*>(blocked) = loop.Blocked;
    return 0;
}

int main() {
    g_Request = CreateSemaphore(nullptr, 0, Requests, nullptr);
    g_Stop = CreateEvent(nullptr, TRUE, FALSE, nullptr);
    g_Tick = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    CreateUmsCompletionList(&g_List);
    PUMS_CONTEXT contexts[6];
    HANDLE threads[8];
    for (int i = 0; i < 6; ++i) {
        CreateUmsThreadContext(&contexts[i]);
        threads[2 + i] = CreateUmsWorker(g_List, contexts[i], Handle, nullptr, 0);
    }
    int blocked[2] = {0, 0};
    for (int i = 0; i < 2; ++i) threads[i] = CreateThread(nullptr, 0, Run, &blocked[i], 0, nullptr);
    const HANDLE queue = CreateTimerQueue();
    HANDLE timer = nullptr;
    if (!CreateTimerQueueTimer(&timer, queue, Bring, nullptr, 1, 1, WT_EXECUTEDEFAULT)) return 1;
    WaitForMultipleObjects(8, threads, TRUE, INFINITE);
    if (!ChangeTimerQueueTimer(queue, timer, 1000, 1000)) return 2;
    if (!DeleteTimerQueueTimer(queue, timer, INVALID_HANDLE_VALUE)) return 3;
    if (!DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE)) return 4;
    for (HANDLE thread : threads) CloseHandle(thread);
    for (PUMS_CONTEXT context : contexts) DeleteUmsThreadContext(context);
    DeleteUmsCompletionList(g_List);
    CloseHandle(g_Request), CloseHandle(g_Stop), CloseHandle(g_Tick);
    printf("served %d, %s\n", (int)g_Served,
           blocked[0] + blocked[1] >= Requests ? "blocked" : "did not block");
    return 0;
}
