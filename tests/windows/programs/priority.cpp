// SPDX-License-Identifier: MIT
// A priority scheduler with park spots: 64 levels found by a bit scan, commands by the yield's
// parameter, workers that park on a spot until another unparks it.
#include <intrin.h>
#include <stdio.h>
#include <string.h>
#include <vector>
#include <windows.h>

struct Task {
    PUMS_CONTEXT Context;
    HANDLE Thread;
    ULONG Priority;
    const char* Name;
    DWORD (*Function)(Task*);
    Task* Next;
};

// Empty, a token, or the task that waits.
struct ParkSpot {
    PVOID volatile State;
};
static Task* const Token = (Task*)1;

enum class Command { Requeue, Park };
struct Request {
    Command What;
    ParkSpot* Spot;
};

static PUMS_COMPLETION_LIST g_List;
static Task *g_Heads[64], *g_Tails[64];
static ULONG64 g_Levels;
static int g_Left, g_New;

static void Push(Task* task) {
    task->Next = nullptr;
    (g_Heads[task->Priority] ? g_Tails[task->Priority]->Next : g_Heads[task->Priority]) = task;
    g_Tails[task->Priority] = task;
    g_Levels |= 1ull << task->Priority;
}

static Task* Pop() {
    unsigned long level;
    if (!_BitScanReverse64(&level, g_Levels)) return nullptr;
    Task* task = g_Heads[level];
    if ((g_Heads[level] = task->Next) == nullptr) g_Levels &= ~(1ull << level);
    return task;
}

static Task* TaskOf(PUMS_CONTEXT context) {
    Task* task = nullptr;
    QueryUmsThreadInformation(context, UmsThreadUserContext, &task, sizeof(task), nullptr);
    return task;
}

static void Unpark(ParkSpot* spot) {
    for (;;) {
        Task* const was = (Task*)InterlockedCompareExchangePointer(&spot->State, Token, nullptr);
        if (was == nullptr || was == Token) return;
        if (InterlockedCompareExchangePointer(&spot->State, nullptr, was) == was) return Push(was);
    }
}

static void Park(ParkSpot* spot) {
    if (InterlockedCompareExchangePointer(&spot->State, nullptr, Token) == Token) return;
    Request request = {Command::Park, spot};
    UmsThreadYield(&request);
}

static _Function_class_(RTL_UMS_SCHEDULER_ENTRY_POINT) VOID NTAPI
    Schedule(_In_ RTL_UMS_SCHEDULER_REASON reason, _In_ ULONG_PTR payload, _In_ PVOID parameter) {
    if (reason == UmsSchedulerThreadYield) {
        Task* const task = TaskOf((PUMS_CONTEXT)payload);
        const Request* const request = (const Request*)parameter;
        // Takes a token that came meanwhile, or stores the task in the spot.
        if (request->What == Command::Requeue ||
            InterlockedCompareExchangePointer(&request->Spot->State, task, nullptr) == Token) {
            if (request->What == Command::Park)
                InterlockedExchangePointer(&request->Spot->State, nullptr);
            Push(task);
        }
    }
    while (g_Left > 0) {
        PUMS_CONTEXT list = nullptr;
        DequeueUmsCompletionListItems(g_List, g_Levels && g_New == 0 ? 0 : INFINITE, &list);
        while (list != nullptr) {
            PUMS_CONTEXT const next = GetNextUmsListItem(list);
            BOOLEAN ended = FALSE;
            QueryUmsThreadInformation(list, UmsThreadIsTerminated, &ended, sizeof(ended), nullptr);
            if (ended) {
                --g_Left;
            } else {
                if (g_New > 0) --g_New;
                Push(TaskOf(list));
            }
            list = next;
        }
        if (g_New > 0) continue;  // All tasks are known before the first runs.
        if (Task* const task = Pop())
            while (!ExecuteUmsThread(task->Context) && GetLastError() == ERROR_RETRY) _mm_pause();
    }
}

static char g_Order[64];
static ParkSpot g_Gate, g_Done;

static DWORD WINAPI Start(LPVOID parameter) {
    Task* const task = (Task*)parameter;
    return task->Function(task);
}

static void Create(Task* task) {
    SIZE_T bytes = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
    std::vector<BYTE> memory(bytes);
    auto* const attributes = (PPROC_THREAD_ATTRIBUTE_LIST)memory.data();
    InitializeProcThreadAttributeList(attributes, 1, 0, &bytes);
    CreateUmsThreadContext(&task->Context);
    SetUmsThreadInformation(task->Context, UmsThreadUserContext, &task, sizeof(task));
    UMS_CREATE_THREAD_ATTRIBUTES as = {UMS_VERSION, task->Context, g_List};
    UpdateProcThreadAttribute(attributes, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &as, sizeof(as),
                              nullptr, nullptr);
    task->Thread =
        CreateRemoteThreadEx(GetCurrentProcess(), nullptr, 0, Start, task, 0, attributes, nullptr);
    DeleteProcThreadAttributeList(attributes);
    ++g_Left, ++g_New;
}

int main() {
    CreateUmsCompletionList(&g_List);
    const auto say = [](Task* task) -> DWORD {
        Request again = {Command::Requeue, nullptr};
        UmsThreadYield(&again);
        strcat(g_Order, task->Name);
        return 0;
    };
    const auto wait = [](Task* task) -> DWORD {
        Park(&g_Gate);
        strcat(g_Order, task->Name);
        Unpark(&g_Done);
        return 0;
    };
    const auto open = [](Task* task) -> DWORD {
        strcat(g_Order, task->Name);
        Unpark(&g_Gate);
        Park(&g_Done);
        strcat(g_Order, task->Name);
        return 0;
    };
    Task tasks[] = {{nullptr, nullptr, 3, "d", say, nullptr},
                    {nullptr, nullptr, 63, "a", wait, nullptr},
                    {nullptr, nullptr, 40, "b", say, nullptr},
                    {nullptr, nullptr, 20, "c", open, nullptr}};
    for (Task& task : tasks) Create(&task);
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, g_List, Schedule, nullptr};
    if (!EnterUmsSchedulingMode(&info)) return 1;
    for (Task& task : tasks) {
        WaitForSingleObject(task.Thread, INFINITE);
        CloseHandle(task.Thread);
        DeleteUmsThreadContext(task.Context);
    }
    DeleteUmsCompletionList(g_List);
    puts(g_Order);
    return 0;
}
