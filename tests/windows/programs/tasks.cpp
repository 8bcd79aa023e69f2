// SPDX-License-Identifier: MIT
// A task system with a list and a stack of idle workers for each scheduler thread: the yield's
// parameter is a function that the scheduler calls, attribute lists are in a STARTUPINFOEXW, tasks
// in interlocked lists, counters unsigned.
#define WIN32_NO_STATUS
#include <Windows.h>
#undef WIN32_NO_STATUS
#include <intrin.h>
#include <ntstatus.h>
#include <winternl.h>

#include <array>
#include <cstdio>
#include <deque>
#include <vector>

C_ASSERT(sizeof(SLIST_ENTRY) >= MEMORY_ALLOCATION_ALIGNMENT);

// What the program would hand to ntdll.
extern "C" NTSYSAPI NTSTATUS NTAPI NtQueueApcThread(IN HANDLE ThreadHandle,
                                                    IN PIO_APC_ROUTINE ApcRoutine,
                                                    IN OPTIONAL PVOID Context,
                                                    IN OPTIONAL PIO_STATUS_BLOCK StatusBlock,
                                                    IN OPTIONAL ULONG Reserved);

namespace {

constexpr DWORD kThreads = 2;
constexpr LONG kWorkers = 4;

struct Task {
    SLIST_ENTRY Link;
    void (*Function)(Task*);
    PUMS_CONTEXT Context;
};
using Continuation = void (*)(Task*);

struct alignas(64) Scheduler {
    PUMS_COMPLETION_LIST List;
    std::deque<Task*> Ready;
    std::vector<Task*> Idle;
    LONG Alive;
};

std::array<Scheduler, kThreads> g_Schedulers;
thread_local DWORD t_Index;
SLIST_HEADER g_New;
volatile DWORD g_Left = 200;
volatile ULONGLONG g_Done;
volatile SIZE_T g_Parked;
__declspec(align(64)) __int64 volatile g_Sum{0};
IO_STATUS_BLOCK g_Status;

void Check(const char* What, bool Succeeded) {
    if (Succeeded) return;
    std::printf("%s failed with %u\n", What, static_cast<unsigned>(GetLastError()));
    ExitProcess(1);
}

Task* TaskOf(PUMS_CONTEXT Context) {
    PVOID Found;
    Check("Query",
          QueryUmsThreadInformation(Context, UmsThreadUserContext, &Found, sizeof(PVOID), NULL));
    return static_cast<Task*>(Found);
}
void Assign(Task* Of, PUMS_CONTEXT Context) {
    Of->Context = Context;
    Check("Set", SetUmsThreadInformation(Context, UmsThreadUserContext, &Of, sizeof(PVOID)));
}
Task* PopNew() { return CONTAINING_RECORD(InterlockedPopEntrySList(&g_New), Task, Link); }

void Execute(Task* Next) {
    while (!ExecuteUmsThread(Next->Context)) Check("Execute", GetLastError() == ERROR_RETRY);
}

DWORD WINAPI WorkerMain(LPVOID Parameter) {
    auto Now = static_cast<Task*>(Parameter);
    const PUMS_CONTEXT Context = Now->Context;
    while (Now->Function) {
        Now->Function(Now);
        InterlockedIncrement(&g_Done);
        InterlockedDecrement(&g_Left);
        Continuation Park = [](Task* Yielded) {
            InterlockedIncrement(&g_Parked);
            g_Schedulers[t_Index].Idle.push_back(Yielded);
        };
        Check("Yield", UmsThreadYield(&Park));
        Now = TaskOf(Context);
    }
    return STATUS_SUCCESS;
}

void MakeWorker(Scheduler& Own, Task* First) {
    STARTUPINFOEXW Startup = {};
    Startup.StartupInfo.cb = sizeof(Startup);
    SIZE_T Size = 0;
    InitializeProcThreadAttributeList(NULL, 1, 0, &Size);
    Startup.lpAttributeList = static_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(_malloca(Size));
    Check("Initialize", InitializeProcThreadAttributeList(Startup.lpAttributeList, 1, 0, &Size));
    PUMS_CONTEXT Context;
    Check("Context", CreateUmsThreadContext(&Context));
    Assign(First, Context);
    UMS_CREATE_THREAD_ATTRIBUTES Ums = {UMS_VERSION, Context, Own.List};
    Check("Update",
          UpdateProcThreadAttribute(Startup.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD,
                                    &Ums, sizeof(Ums), NULL, NULL));
    const HANDLE Thread = CreateRemoteThreadEx(GetCurrentProcess(), NULL, 4096, WorkerMain, First,
                                               0, Startup.lpAttributeList, NULL);
    Check("Create", Thread != NULL);
    CloseHandle(Thread);
    DeleteProcThreadAttributeList(Startup.lpAttributeList);
    _freea(Startup.lpAttributeList);
    ++Own.Alive;
}

void Dequeue(Scheduler& Own, DWORD Milliseconds) {
    PUMS_CONTEXT Context;
    if (!DequeueUmsCompletionListItems(Own.List, Milliseconds, &Context))
        Check("Dequeue", GetLastError() == ERROR_TIMEOUT);
    for (PUMS_CONTEXT Next; Context; Context = Next) {
        Next = GetNextUmsListItem(Context);
        BOOLEAN Terminated;
        Check("Query", QueryUmsThreadInformation(Context, UmsThreadIsTerminated, &Terminated,
                                                 sizeof(Terminated), NULL));
        if (!Terminated) {
            Own.Ready.push_back(TaskOf(Context));
        } else {
            Check("Delete", DeleteUmsThreadContext(Context));
            --Own.Alive;
        }
    }
}

void __stdcall SchedulerProc(UMS_SCHEDULER_REASON Reason, ULONG_PTR Payload, PVOID Parameter) {
    Scheduler& Own = g_Schedulers[t_Index];
    static Task Stop = {};
    if (Reason == UmsSchedulerThreadYield)
        (*static_cast<Continuation*>(Parameter))(TaskOf(reinterpret_cast<PUMS_CONTEXT>(Payload)));
    for (;;) {
        Dequeue(Own, 0);
        while (!Own.Ready.empty()) {
            Task* const Next = Own.Ready.front();
            Own.Ready.pop_front();
            Execute(Next);
        }
        if (Own.Idle.empty() && Own.Alive < kWorkers && QueryDepthSList(&g_New) != 0) {
            if (Task* const New = PopNew()) MakeWorker(Own, New);
        } else if (!Own.Idle.empty() && (g_Left == 0 || QueryDepthSList(&g_New) != 0)) {
            Task* const New = PopNew();
            if (New == NULL && g_Left != 0) continue;
            const PUMS_CONTEXT Context = Own.Idle.back()->Context;
            Own.Idle.pop_back();
            if (New != NULL) {
                Assign(New, Context);
                Execute(New);
            }
            Task* Last = &Stop;
            Check("Set",
                  SetUmsThreadInformation(Context, UmsThreadUserContext, &Last, sizeof(PVOID)));
            while (!ExecuteUmsThread(Context)) Check("Execute", GetLastError() == ERROR_RETRY);
        } else if (g_Left == 0 && Own.Alive == 0) {
            return;
        } else {
            Dequeue(Own, 1);
        }
    }
}

DWORD WINAPI SchedulerMain(LPVOID Index) {
    t_Index = static_cast<DWORD>(reinterpret_cast<ULONG_PTR>(Index));
    Scheduler& Own = g_Schedulers[t_Index];
    Check("CreateList", CreateUmsCompletionList(&Own.List));
    UMS_SCHEDULER_STARTUP_INFO Info = {UMS_VERSION, Own.List, SchedulerProc, NULL};
    Check("Enter", EnterUmsSchedulingMode(&Info));
    Check("DeleteList", DeleteUmsCompletionList(Own.List));
    return 0;
}

void Add(Task*) {
    if (_InterlockedAdd64(&g_Sum, 2) % 16 == 0) Sleep(1);
}

}  // namespace

int main() {
    InitializeSListHead(&g_New);
    std::vector<Task*> Tasks;
    for (DWORD i = 0; i < g_Left; ++i) {
        auto New = static_cast<Task*>(_aligned_malloc(sizeof(Task), MEMORY_ALLOCATION_ALIGNMENT));
        New->Function = Add;
        InterlockedPushEntrySList(&g_New, &New->Link);
        Tasks.push_back(New);
    }
    HANDLE Threads[kThreads];
    for (ULONG_PTR i = 0; i < kThreads; ++i)
        Threads[i] = CreateThread(NULL, 0, SchedulerMain, reinterpret_cast<LPVOID>(i), 0, NULL);
    Check("Wait", WaitForMultipleObjects(kThreads, Threads, TRUE, INFINITE) == WAIT_OBJECT_0);
    for (const HANDLE Thread : Threads) CloseHandle(Thread);
    for (Task* const Old : Tasks) _aligned_free(Old);
    g_Status.Status = STATUS_SUCCESS;
    std::printf("sum %d, %u done, %u parked\n", static_cast<int>(g_Sum),
                static_cast<unsigned>(g_Done), static_cast<unsigned>(g_Parked));
    return NT_SUCCESS(g_Status.Status) ? 0 : 1;
}
