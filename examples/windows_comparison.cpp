// SPDX-License-Identifier: MIT
//
// Kernel threads, user-mode scheduled threads and fibers that yield to each other, written for
// Windows: nothing here knows of Linux. The arguments are the number of threads and the number of
// yields. The times go to standard error.
//
// Output:
//   kernel threads: 10 threads yielded 1000 times
//   UMS workers: 10 threads yielded 1000 times
//   fibers: 10 threads yielded 1000 times
#include <SDKDDKVer.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <windows.h>

static unsigned threads = 10, yields = 100;
static LONG64 done;

static double Now() {
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    return double(count.QuadPart) / double(frequency.QuadPart);
}

static void Report(const char* what, double seconds) {
    std::printf("%s: %u threads yielded %lld times\n", what, threads, done);
    std::fprintf(stderr, "%s: %.0f ns per yield\n", what, seconds * 1e9 / double(done));
    done = 0;
}

// --- Kernel threads ---

static DWORD WINAPI KernelThread(LPVOID) {
    for (unsigned i = 0; i < yields; ++i) {
        InterlockedIncrement64(&done);
        SwitchToThread();
    }
    return 0;
}

static void MeasureKernelThreads() {
    std::vector<HANDLE> all;
    const double start = Now();
    for (unsigned i = 0; i < threads; ++i)
        all.push_back(CreateThread(NULL, 0, KernelThread, NULL, 0, NULL));
    for (HANDLE h : all) {
        WaitForSingleObject(h, INFINITE);
        CloseHandle(h);
    }
    Report("kernel threads", Now() - start);
}

// --- UMS ---

static PUMS_COMPLETION_LIST list;
// A ring; its memory is taken before the first worker runs.
static std::vector<PUMS_CONTEXT> ready;
static size_t first, last;
static unsigned alive;

static DWORD WINAPI UmsWorker(LPVOID) {
    for (unsigned i = 0; i < yields; ++i) {
        ++done;
        UmsThreadYield(NULL);
    }
    return 0;
}

static VOID NTAPI UmsScheduler(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID) {
    if (reason == UmsSchedulerThreadYield) ready[last++ % ready.size()] = PUMS_CONTEXT(payload);
    for (;;) {
        while (first != last) {
            PUMS_CONTEXT next = ready[first++ % ready.size()];
            while (!ExecuteUmsThread(next) && GetLastError() == ERROR_RETRY) YieldProcessor();
        }
        if (alive == 0) return;
        PUMS_CONTEXT context;
        DequeueUmsCompletionListItems(list, INFINITE, &context);
        for (PUMS_CONTEXT next; context != NULL; context = next) {
            next = GetNextUmsListItem(context);
            BOOLEAN ended = FALSE;
            QueryUmsThreadInformation(context, UmsThreadIsTerminated, &ended, sizeof ended, NULL);
            if (!ended) {
                ready[last++ % ready.size()] = context;
            } else {
                DeleteUmsThreadContext(context);
                --alive;
            }
        }
    }
}

static void MeasureUms() {
    CreateUmsCompletionList(&list);
    ready.resize(threads + 1);
    alive = threads;
    std::vector<HANDLE> all;
    for (unsigned i = 0; i < threads; ++i) {
        UMS_CREATE_THREAD_ATTRIBUTES as = {UMS_VERSION, NULL, list};
        CreateUmsThreadContext(&as.UmsContext);
        SIZE_T size = 0;
        InitializeProcThreadAttributeList(NULL, 1, 0, &size);
        auto attributes = static_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(std::malloc(size));
        InitializeProcThreadAttributeList(attributes, 1, 0, &size);
        UpdateProcThreadAttribute(attributes, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &as, sizeof as,
                                  NULL, NULL);
        all.push_back(CreateRemoteThreadEx(GetCurrentProcess(), NULL, 128 * 1024, UmsWorker, NULL,
                                           STACK_SIZE_PARAM_IS_A_RESERVATION, attributes, NULL));
        DeleteProcThreadAttributeList(attributes);
        std::free(attributes);
    }
    const double start = Now();
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, list, UmsScheduler, NULL};
    EnterUmsSchedulingMode(&info);
    Report("UMS workers", Now() - start);
    for (HANDLE h : all) {
        WaitForSingleObject(h, INFINITE);
        CloseHandle(h);
    }
    DeleteUmsCompletionList(list);
}

// --- Fibers ---

static std::vector<LPVOID> fibers;
static LPVOID home;

static VOID CALLBACK Fiber(LPVOID number) {
    const size_t next = (reinterpret_cast<size_t>(number) + 1) % threads;
    for (unsigned i = 0; i < yields; ++i) {
        ++done;
        SwitchToFiber(fibers[next]);
    }
    for (;;) SwitchToFiber(home);
}

static void MeasureFibers() {
    home = ConvertThreadToFiber(NULL);
    for (size_t i = 0; i < threads; ++i)
        fibers.push_back(CreateFiber(64 * 1024, Fiber, reinterpret_cast<LPVOID>(i)));
    const double start = Now();
    SwitchToFiber(fibers[0]);
    Report("fibers", Now() - start);
    for (LPVOID f : fibers) DeleteFiber(f);
    ConvertFiberToThread();
}

int main(int argc, char** argv) {
    if (argc > 1) threads = static_cast<unsigned>(std::atoi(argv[1]));
    if (argc > 2) yields = static_cast<unsigned>(std::atoi(argv[2]));
    if (threads == 0 || yields == 0) {
        std::fprintf(stderr, "usage: %s [THREADS [YIELDS]], both at least 1\n", argv[0]);
        return 2;
    }
    MeasureKernelThreads();
    MeasureUms();
    MeasureFibers();
}
