// SPDX-License-Identifier: MIT
//
// Schedulers that share a completion list and steal from each other, in C by the Windows names. A
// worker on the list goes to the scheduler that dequeues it first; a worker that yielded stays with
// its scheduler, until another scheduler has nothing to do.
//
// Output:
//   120 workers ended, 120 counted to 50
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

enum { SCHEDULERS = 3, WORKERS = 120, STEPS = 50 };

typedef struct Queue {
    SRWLOCK lock;
    PUMS_CONTEXT items[WORKERS];
    int count;
} Queue;

static PUMS_COMPLETION_LIST list;
static Queue queues[SCHEDULERS];
static LONG ended, counted;

/* A scheduler's own. */
static __declspec(thread) int self;

static void Push(Queue* queue, PUMS_CONTEXT context) {
    AcquireSRWLockExclusive(&queue->lock);
    queue->items[queue->count++] = context;
    ReleaseSRWLockExclusive(&queue->lock);
}

static PUMS_CONTEXT Pop(Queue* queue) {
    PUMS_CONTEXT context = NULL;
    AcquireSRWLockExclusive(&queue->lock);
    if (queue->count > 0) {
        /* The oldest first, so that all workers advance. */
        context = queue->items[0];
        MoveMemory(&queue->items[0], &queue->items[1],
                   (size_t)--queue->count * sizeof queue->items[0]);
    }
    ReleaseSRWLockExclusive(&queue->lock);
    return context;
}

static PUMS_CONTEXT Steal(void) {
    PUMS_CONTEXT context = NULL;
    for (int i = 1; i < SCHEDULERS && context == NULL; ++i)
        context = Pop(&queues[(self + i) % SCHEDULERS]);
    return context;
}

static void TakeNew(DWORD milliseconds) {
    PUMS_CONTEXT next = NULL;
    DequeueUmsCompletionListItems(list, milliseconds, &next);
    for (PUMS_CONTEXT context = next; context != NULL; context = next) {
        BOOLEAN terminated = FALSE;
        next = GetNextUmsListItem(context);
        QueryUmsThreadInformation(context, UmsThreadIsTerminated, &terminated, sizeof terminated,
                                  NULL);
        if (terminated) {
            DeleteUmsThreadContext(context);
            InterlockedIncrement(&ended);
        } else {
            Push(&queues[self], context);
        }
    }
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID parameter) {
    if (reason == UmsSchedulerStartup) self = (int)((Queue*)parameter - queues);
    if (reason == UmsSchedulerThreadYield) Push(&queues[self], (PUMS_CONTEXT)payload);
    while (InterlockedCompareExchange(&ended, 0, 0) < WORKERS) {
        TakeNew(0);
        PUMS_CONTEXT context = Pop(&queues[self]);
        if (context == NULL) context = Steal();
        if (context == NULL) {
            TakeNew(1); /* There is nothing anywhere. */
            continue;
        }
        while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) YieldProcessor();
    }
}

static DWORD WINAPI RunScheduler(LPVOID queue) {
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, list, Schedule, queue};
    return EnterUmsSchedulingMode(&info) ? 0 : GetLastError();
}

static DWORD WINAPI Work(LPVOID parameter) {
    static __declspec(thread) int step;
    UNREFERENCED_PARAMETER(parameter);
    for (step = 0; step < STEPS; ++step) UmsThreadYield(NULL);
    if (step == STEPS) InterlockedIncrement(&counted);
    return 0;
}

static HANDLE StartWorker(void) {
    UMS_CREATE_THREAD_ATTRIBUTES as = {UMS_VERSION, NULL, list};
    SIZE_T size = 0;
    CreateUmsThreadContext(&as.UmsContext);
    InitializeProcThreadAttributeList(NULL, 1, 0, &size);
    LPPROC_THREAD_ATTRIBUTE_LIST attributes = malloc(size);
    InitializeProcThreadAttributeList(attributes, 1, 0, &size);
    UpdateProcThreadAttribute(attributes, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &as, sizeof as, NULL,
                              NULL);
    HANDLE thread =
        CreateRemoteThreadEx(GetCurrentProcess(), NULL, 0, Work, NULL, 0, attributes, NULL);
    DeleteProcThreadAttributeList(attributes);
    free(attributes);
    return thread;
}

int main(void) {
    static HANDLE workers[WORKERS];
    HANDLE schedulers[SCHEDULERS];
    CreateUmsCompletionList(&list);
    for (int i = 0; i < WORKERS; ++i) workers[i] = StartWorker();
    for (int i = 0; i < SCHEDULERS; ++i)
        schedulers[i] = CreateThread(NULL, 0, RunScheduler, &queues[i], 0, NULL);
    WaitForMultipleObjects(SCHEDULERS, schedulers, TRUE, INFINITE);
    for (int i = 0; i < SCHEDULERS; ++i) CloseHandle(schedulers[i]);
    for (int i = 0; i < WORKERS; ++i) {
        WaitForSingleObject(workers[i], INFINITE);
        CloseHandle(workers[i]);
    }
    printf("%d workers ended, %d counted to %d\n", (int)ended, (int)counted, STEPS);
    return DeleteUmsCompletionList(list) ? 0 : 1;
}
