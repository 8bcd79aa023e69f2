// SPDX-License-Identifier: MIT

// Making, finding, suspending and ending threads. Workers are made in windows/ums.cpp.

#include <cerrno>
#include <csetjmp>
#include <filesystem>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/futex.hpp"
#include "ums/compat/windows/process.h"
#include "windows/create_worker.hpp"
#include "windows/handle_table.hpp"
#include "windows/last_error.hpp"
#include "windows/thread.hpp"
#include "windows/thread_ids.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

void* run(void* record) {
    auto& t = *static_cast<thread*>(record);
    t.begin();
    {
        const uninterrupted section;  // Leaving it obeys a suspension that came before the start.
    }
    obey_suspension();
    if (setjmp(t.bottom) == 0) {
        const DWORD code = t.start(t.argument);
        const guard hold{dispatcher};
        t.set_exit_code(code);
    }
    return nullptr;
}

// Starts the pthread; returns 0 or an error number.
int start_thread(thread& t, SIZE_T stack_bytes, DWORD flags) noexcept {
    pthread_attr_t attributes;
    if (const int error = ::pthread_attr_init(&attributes); error != 0) return error;
    int error = 0;
    if (stack_bytes != 0) {
        const SIZE_T bytes = (stack_to_reserve(stack_bytes, flags) + 4095) & ~SIZE_T{4095};
        error = ::pthread_attr_setstacksize(&attributes, bytes);
    }
    if (error == 0) error = ::pthread_create(&t.handle, &attributes, run, &t);
    ::pthread_attr_destroy(&attributes);
    return error;
}

HANDLE create_thread(SIZE_T stack_bytes, LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags,
                     LPDWORD id) noexcept {
    const uninterrupted section;
    ref<thread> made{new (std::nothrow) thread{thread::origin::made}};
    if (!made) return fail(ERROR_NOT_ENOUGH_MEMORY);
    made->start = start;
    made->argument = argument;
    // relaxed: published by the start of the thread.
    if ((flags & CREATE_SUSPENDED) != 0) made->stop.count.store(1, compat::relaxed);
    made->is_joined = true;  // Until it has a thread to join.
    const HANDLE handle = open_handle(*made);
    if (handle == nullptr) return nullptr;
    made->is_joined = false;
    {
        const guard hold{dispatcher};
        made->share();  // The thread's own reference.
    }
    if (const int error = start_thread(*made, stack_bytes, flags); error != 0) {
        made->is_joined = true;
        drop(made.get());
        CloseHandle(handle);
        return fail(error == EINVAL ? ERROR_INVALID_PARAMETER : ERROR_NOT_ENOUGH_MEMORY);
    }
    // sync(windows.thread): waits until the thread's id is known.
    while (made->id.load(compat::acquire) == 0) compat::futex_wait(&made->id, 0);
    if (id != nullptr) *id = made->id.load(compat::relaxed);  // relaxed: read above.
    return handle;
}

bool is_of_this_process(HANDLE process) noexcept { return process == GetCurrentProcess(); }

constexpr DWORD bad_count = MAXDWORD;

DWORD fail_count(DWORD error) noexcept {
    SetLastError(error);
    return bad_count;
}

// Translates what a worker's suspension returned.
DWORD worker_count(int error, unsigned previous, bool is_resume) noexcept {
    if (error == 0) return previous;
    if (error == -EINVAL && is_resume) return 0;
    const bool has_ended = error == -ESRCH || error == -EBADF;
    if (has_ended && is_resume) return 0;
    return fail_count(has_ended ? ERROR_ACCESS_DENIED : ERROR_GEN_FAILURE);
}

}  // namespace

HANDLE CreateThread(LPSECURITY_ATTRIBUTES, SIZE_T stack_bytes, LPTHREAD_START_ROUTINE start,
                    LPVOID argument, DWORD flags, LPDWORD id) {
    if (start == nullptr) return fail(ERROR_INVALID_PARAMETER);
    return create_thread(stack_bytes, start, argument, flags, id);
}

HANDLE CreateRemoteThreadEx(HANDLE process, LPSECURITY_ATTRIBUTES, SIZE_T stack_bytes,
                            LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags,
                            LPPROC_THREAD_ATTRIBUTE_LIST list, LPDWORD id) {
    if (!is_of_this_process(process)) return fail(ERROR_INVALID_HANDLE);
    if (start == nullptr) return fail(ERROR_INVALID_PARAMETER);
    if (list != nullptr) {
        if (!is_initialised(*list)) return fail(ERROR_INVALID_PARAMETER);
        if (const UMS_CREATE_THREAD_ATTRIBUTES* const as = worker_attributes(*list))
            return create_worker(*as, stack_bytes, start, argument, flags, id);
    }
    return create_thread(stack_bytes, start, argument, flags, id);
}

uintptr_t _beginthreadex(void*, unsigned stack_bytes, unsigned (*start)(void*), void* argument,
                         unsigned flags, unsigned* id) {
    return reinterpret_cast<uintptr_t>(
        CreateThread(nullptr, stack_bytes, start, argument, flags, id));
}
void _endthreadex(unsigned code) { ExitThread(code); }

HANDLE OpenThread(DWORD, BOOL, DWORD id) {
    const ref<thread> found = find_thread(id);
    if (!found) return fail(ERROR_INVALID_PARAMETER);
    return open_handle(*found);
}

VOID ExitThread(DWORD code) { thread::current().exit(code); }

BOOL TerminateThread(HANDLE handle, DWORD code) {
    ref<thread> t = find<thread>(handle);
    if (!t) return FALSE;
    if (t.get() == &thread::current()) {
        t = {};  // Dropped now: nothing of this frame will be destroyed.
        ExitThread(code);
    }
    if (t->from == thread::origin::worker) {
        const uninterrupted section;  // Covers telling the worker and ending its wait.
        const int error = ums_worker_terminate(t->worker, static_cast<intptr_t>(code));
        {
            // A wait for handles ends at once, and the worker with it; other calls return first.
            const guard hold{dispatcher};
            if (error == 0) t->wait.is_over = true, t->wait.serve(failed);
        }
        // These errors say that it has ended and was joined.
        return error == 0 || error == -ESRCH || error == -EBADF ? TRUE : fail(ERROR_GEN_FAILURE);
    }
    // For a thread that we did not make, nothing would tell when it is gone.
    const uninterrupted section;
    {
        const guard hold{dispatcher};
        if (t->has_ended) return TRUE;
        if (t->from != thread::origin::made || t->is_scheduler) return fail(ERROR_ACCESS_DENIED);
        // sync(windows.suspend): the thread leaves.
        t->stop.is_condemned.store(1, compat::release);
        let_go(t->stop);
        if (!interrupt(t->handle)) {
            t->stop.is_condemned.store(0, compat::relaxed);  // relaxed: no other thread was told.
            return fail(ERROR_NO_SYSTEM_RESOURCES);
        }
    }
    wait_until_gone(t->stop);
    std::vector<ref<object>> left;  // What it was waiting for.
    {
        const guard hold{dispatcher};
        if (t->has_ended) return TRUE;  // It ended by itself, or another thread terminated it.
        t->is_joined = true;
        t->set_exit_code(code);
        t->end();
        left.swap(t->wait.objects);
    }
    ::pthread_detach(t->handle);
    drop(t.get());  // Drops the reference that the thread itself held.
    return TRUE;
}

DWORD SuspendThread(HANDLE handle) {
    // Before the lock, because making a new record takes it.
    const thread& self = thread::current();
    ref<thread> t = find<thread>(handle);
    if (!t) return bad_count;
    if (t->from == thread::origin::worker) {
        unsigned previous = 0;
        if (t.get() != &self) {
            const uninterrupted section;  // For the worker's lock.
            const int error = ums_worker_suspend(t->worker, &previous);
            return worker_count(error, previous, false);
        }
        const ums_worker_t worker = t->worker;
        t = {};  // Dropped now: the thread may be terminated in there.
        const int error = ums_worker_suspend(worker, &previous);
        return worker_count(error, previous, false);
    }
    constexpr std::uint32_t most = 127;
    std::uint32_t previous = 0;
    {
        const guard hold{dispatcher};
        if (t->has_ended) return fail_count(ERROR_ACCESS_DENIED);
        if (t->is_scheduler) return fail_count(ERROR_NOT_SUPPORTED);
        previous = t->stop.count.load(compat::relaxed);  // relaxed: under the lock.
        if (previous == most) return fail_count(ERROR_GEN_FAILURE);
        // sync(windows.suspend): see obey_suspension().
        t->stop.count.store(previous + 1, compat::release);
        if (t.get() != &self && !interrupt(t->handle)) {
            t->stop.count.store(previous, compat::relaxed);  // relaxed: no other thread was told.
            return fail_count(ERROR_NO_SYSTEM_RESOURCES);
        }
    }
    if (t.get() == &self) {
        t = {};  // Dropped now, as above.
        obey_suspension();
    } else {
        wait_until_stopped(t->stop);
    }
    return previous;
}

DWORD ResumeThread(HANDLE handle) {
    const ref<thread> t = find<thread>(handle);
    if (!t) return bad_count;
    if (t->from == thread::origin::worker) {
        unsigned previous = 0;
        const uninterrupted section;  // This may queue the worker, which takes the list's lock.
        const int error = ums_worker_resume(t->worker, &previous);
        return worker_count(error, previous, true);
    }
    const guard hold{dispatcher};
    const std::uint32_t previous = t->stop.count.load(compat::relaxed);  // relaxed: under the lock.
    if (previous == 0) return 0;
    // sync(windows.suspend): the thread sees what was done before.
    t->stop.count.store(previous - 1, compat::release);
    if (previous == 1) let_go(t->stop);
    return previous;
}

BOOL GetExitCodeThread(HANDLE handle, LPDWORD code) {
    if (code == nullptr) return fail(ERROR_INVALID_PARAMETER);
    const ref<thread> t = find<thread>(handle);
    if (!t) return FALSE;
    const guard hold{dispatcher};
    // The code is not known while the thread-locals are being destroyed; a worker's is known once
    // its context is terminated.
    const bool is_known = t->has_ended || t->from == thread::origin::worker;
    *code = is_known ? t->exit_code : STILL_ACTIVE;
    return TRUE;
}

DWORD GetThreadId(HANDLE handle) {
    const ref<thread> t = find<thread>(handle);
    // sync(windows.thread): the id is set before any thread has a handle.
    return t ? t->id.load(compat::acquire) : 0;
}

// relaxed: the thread wrote it itself.
DWORD GetCurrentThreadId() { return thread::current().id.load(compat::relaxed); }
DWORD GetCurrentProcessId() { return static_cast<DWORD>(::getpid()); }

BOOL SwitchToThread() { return ::sched_yield() == 0 ? TRUE : FALSE; }

BOOL SetThreadPriority(HANDLE handle, int priority) {
    const ref<thread> t = find<thread>(handle);
    if (!t) return FALSE;
    const bool is_level =
        (priority >= THREAD_PRIORITY_LOWEST && priority <= THREAD_PRIORITY_HIGHEST) ||
        priority == THREAD_PRIORITY_IDLE || priority == THREAD_PRIORITY_TIME_CRITICAL;
    if (!is_level) return fail(ERROR_INVALID_PARAMETER);
    const guard hold{dispatcher};
    t->priority = priority;
    return TRUE;
}

int GetThreadPriority(HANDLE handle) {
    const ref<thread> t = find<thread>(handle);
    if (!t) return THREAD_PRIORITY_ERROR_RETURN;
    const guard hold{dispatcher};
    return t->priority;
}

namespace {

// Converts between the two masks of CPUs 0 to 63.
cpu_set_t set_of(DWORD_PTR mask) noexcept {
    cpu_set_t made{};
    for (unsigned cpu = 0; cpu < 64; ++cpu)
        if ((mask >> cpu & 1) != 0) CPU_SET(cpu, &made);
    return made;
}
DWORD_PTR mask_of(const cpu_set_t& set) noexcept {
    DWORD_PTR made = 0;
    for (unsigned cpu = 0; cpu < 64; ++cpu)
        if (CPU_ISSET(cpu, &set)) made |= DWORD_PTR{1} << cpu;
    return made;
}

// Returns the mask that was set before, or 0. If `wanted` is null, the mask stays.
DWORD_PTR change_affinity(HANDLE handle, const cpu_set_t* wanted) noexcept {
    const ref<thread> t = find<thread>(handle);
    if (!t) return 0;
    if (t->from == thread::origin::worker) return SetLastError(ERROR_NOT_SUPPORTED), 0;
    cpu_set_t before;
    const uninterrupted section;
    // The thread's reference holds its pthread until after its end.
    const guard hold{dispatcher};
    if (t->has_ended || ::pthread_getaffinity_np(t->handle, sizeof before, &before) != 0 ||
        (wanted != nullptr && ::pthread_setaffinity_np(t->handle, sizeof *wanted, wanted) != 0))
        return SetLastError(ERROR_INVALID_PARAMETER), 0;
    return mask_of(before);
}

DWORD_PTR process_mask() noexcept {
    cpu_set_t set{};
    ::sched_getaffinity(::getpid(), sizeof set, &set);
    return mask_of(set);
}
const DWORD_PTR mask_at_start = process_mask();

}  // namespace

DWORD_PTR SetThreadAffinityMask(HANDLE handle, DWORD_PTR mask) {
    const cpu_set_t wanted = set_of(mask);
    return change_affinity(handle, &wanted);
}
DWORD_PTR GetThreadAffinityMask(HANDLE handle) { return change_affinity(handle, nullptr); }

BOOL GetProcessAffinityMask(HANDLE process, DWORD_PTR* own, DWORD_PTR* system) {
    if (!is_of_this_process(process)) return fail(ERROR_INVALID_HANDLE);
    *own = process_mask();
    *system = mask_at_start;
    return TRUE;
}

BOOL SetProcessAffinityMask(HANDLE process, DWORD_PTR mask) {
    if (!is_of_this_process(process) || mask == 0 || (mask & ~mask_at_start) != 0)
        return fail(ERROR_INVALID_PARAMETER);
    const cpu_set_t wanted = set_of(mask);
    const uninterrupted section;
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task", error})
        ::sched_setaffinity(std::stoi(task.path().filename()), sizeof wanted, &wanted);
    return !error ? TRUE : fail(ERROR_NOT_ENOUGH_MEMORY);
}

DWORD SetThreadIdealProcessor(HANDLE handle, DWORD processor) {
    const ref<thread> t = find<thread>(handle);
    if (!t) return bad_count;
    constexpr DWORD most = 64;  // MAXIMUM_PROCESSORS only asks for the current one.
    return processor <= most ? 0 : fail_count(ERROR_INVALID_PARAMETER);
}
