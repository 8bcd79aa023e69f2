// SPDX-License-Identifier: MIT
// A user interface thread with a message loop; workers report to it by posted messages, the last
// one quits it.
#include "create.h"
#include <stdio.h>

enum { WM_STEP = WM_USER + 1, WM_ENDED };

static PUMS_COMPLETION_LIST g_List;
static DWORD g_Interface;
static int g_Left = 3;

static DWORD WINAPI Work(LPVOID number) {
    for (int step = 0; step < 4; ++step) {
        PostThreadMessage(g_Interface, WM_STEP, reinterpret_cast<WPARAM>(number), step);
        if (step % 2)
            Sleep(1);
        else
            UmsThreadYield(nullptr);
    }
    PostThreadMessage(g_Interface, WM_ENDED, 0, 0);
    return 0;
}

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID) {
    static PUMS_CONTEXT ready[16];
    static unsigned first, last;
    if (reason == UmsSchedulerThreadYield)
        ready[last++ % 16] = reinterpret_cast<PUMS_CONTEXT>(payload);
    while (g_Left > 0) {
        if (first != last) {
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

static DWORD WINAPI Run(LPVOID) {
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, g_List, Schedule, nullptr};
    return EnterUmsSchedulingMode(&info) ? 0 : 1;
}

int main() {
    MSG message;
    PeekMessage(&message, nullptr, WM_USER, WM_USER, PM_NOREMOVE);  // Makes the queue, on Windows.
    g_Interface = GetCurrentThreadId();
    CreateUmsCompletionList(&g_List);
    PUMS_CONTEXT contexts[3];
    HANDLE threads[4];
    for (ULONG_PTR i = 0; i < 3; ++i) {
        CreateUmsThreadContext(&contexts[i]);
        threads[i] = CreateUmsWorker(g_List, contexts[i], Work, reinterpret_cast<LPVOID>(i), 0);
    }
    threads[3] = CreateThread(nullptr, 0, Run, nullptr, 0, nullptr);
    int steps = 0, ended = 0;
    BOOL got;
    while ((got = GetMessage(&message, nullptr, 0, 0)) != 0) {
        if (got == -1) return 1;
        if (message.message == WM_STEP) ++steps;
        if (message.message == WM_ENDED && ++ended == 3) PostQuitMessage(7);
        TranslateMessage(&message);
        DispatchMessage(&message);
    }
    WaitForMultipleObjects(4, threads, TRUE, INFINITE);
    for (HANDLE thread : threads) CloseHandle(thread);
    for (PUMS_CONTEXT context : contexts) DeleteUmsThreadContext(context);
    DeleteUmsCompletionList(g_List);
    if (PostThreadMessage(0, WM_USER, 0, 0)) return 2;
    printf("%d steps, quit with %d\n", steps, (int)message.wParam);
    return 0;
}
