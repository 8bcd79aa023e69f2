// SPDX-License-Identifier: MIT
//
// A priority scheduler by the Windows names: of the workers that could run, one with the highest
// priority does. The priority lies in the user data of the worker's context.
//
// Output:
//   high: 3 left
//   high: 2 left
//   high: 1 left
//   middle: 2 left
//   middle: 1 left
//   low: 1 left
#include <cstdio>
#include <vector>
#include <windows.h>

struct Task {
    const char* name;
    int priority, steps;
    PUMS_CONTEXT context;
};

static PUMS_COMPLETION_LIST list;
static std::vector<Task*> ready;  // Not sorted. Its memory is taken before the first worker runs.
static size_t alive;

static Task* TaskOf(PUMS_CONTEXT context) {
    PVOID task = nullptr;
    QueryUmsThreadInformation(context, UmsThreadUserContext, &task, sizeof task, nullptr);
    return static_cast<Task*>(task);
}

static DWORD WINAPI Run(LPVOID parameter) {
    auto& task = *static_cast<Task*>(parameter);
    for (; task.steps > 0; --task.steps) {
        std::printf("%s: %d left\n", task.name, task.steps);
        UmsThreadYield(nullptr);
    }
    return 0;
}

static void TakeNew(DWORD milliseconds) {
    PUMS_CONTEXT next = nullptr;
    DequeueUmsCompletionListItems(list, milliseconds, &next);
    for (PUMS_CONTEXT context = next; context != nullptr; context = next) {
        next = GetNextUmsListItem(context);
        BOOLEAN ended = FALSE;
        QueryUmsThreadInformation(context, UmsThreadIsTerminated, &ended, sizeof ended, nullptr);
        if (ended)
            --alive;
        else
            ready.push_back(TaskOf(context));
    }
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID) {
    if (reason == UmsSchedulerThreadYield) ready.push_back(TaskOf(PUMS_CONTEXT(payload)));
    while (alive > 0) {
        TakeNew(ready.empty() ? INFINITE : 0);
        if (ready.empty()) continue;
        size_t best = 0;
        for (size_t i = 1; i < ready.size(); ++i)
            if (ready[i]->priority > ready[best]->priority) best = i;
        Task* const task = ready[best];
        ready[best] = ready.back();
        ready.pop_back();
        while (!ExecuteUmsThread(task->context) && GetLastError() == ERROR_RETRY) YieldProcessor();
    }
}

static HANDLE Start(Task& task) {
    CreateUmsThreadContext(&task.context);
    PVOID data = &task;
    SetUmsThreadInformation(task.context, UmsThreadUserContext, &data, sizeof data);
    UMS_CREATE_THREAD_ATTRIBUTES as = {UMS_VERSION, task.context, list};
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &size);
    std::vector<char> memory(size);
    const auto attributes = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory.data());
    InitializeProcThreadAttributeList(attributes, 1, 0, &size);
    UpdateProcThreadAttribute(attributes, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &as, sizeof as,
                              nullptr, nullptr);
    return CreateRemoteThreadEx(GetCurrentProcess(), nullptr, 0, Run, &task, 0, attributes,
                                nullptr);
}

int main() {
    Task tasks[] = {{"low", 1, 1, nullptr}, {"high", 3, 3, nullptr}, {"middle", 2, 2, nullptr}};
    HANDLE threads[3];
    CreateUmsCompletionList(&list);
    ready.reserve(alive = 3);
    for (size_t i = 0; i < 3; ++i) threads[i] = Start(tasks[i]);
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, list, Schedule, nullptr};
    if (!EnterUmsSchedulingMode(&info)) return 1;
    WaitForMultipleObjects(3, threads, TRUE, INFINITE);
    for (HANDLE thread : threads) CloseHandle(thread);
    for (Task& task : tasks) DeleteUmsThreadContext(task.context);
    DeleteUmsCompletionList(list);
}
