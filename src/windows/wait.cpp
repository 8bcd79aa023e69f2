// SPDX-License-Identifier: MIT

// The calls that wait for handles.

#include "windows/event.hpp"
#include "windows/handle_table.hpp"
#include "windows/last_error.hpp"
#include "windows/mutex.hpp"
#include "windows/semaphore.hpp"
#include "windows/thread.hpp"

using namespace ums::windows;

namespace {

DWORD fail_wait(DWORD error) noexcept {
    SetLastError(error);
    return WAIT_FAILED;
}

static_assert(timed_out == WAIT_TIMEOUT && abandoned == WAIT_ABANDONED_0);

ums::os::nanoseconds limit_of(DWORD milliseconds) noexcept {
    return milliseconds == 0 ? 0 : deadline_of(milliseconds);
}

// Waits. Who was told that a thread has ended finds nothing of it.
DWORD wait(object* const* objects, DWORD count, bool all, DWORD milliseconds) noexcept {
    const DWORD result = wait_for(objects, count, all, limit_of(milliseconds));
    for (DWORD i = 0; i < count && result < abandoned; ++i)
        if ((all || i == result) && objects[i]->what == object::kind::thread)
            static_cast<thread*>(objects[i])->join();
    return result;
}

}  // namespace

DWORD WaitForMultipleObjectsEx(DWORD count, const HANDLE* handles, BOOL all, DWORD milliseconds,
                               BOOL) {
    if (count == 0 || count > MAXIMUM_WAIT_OBJECTS || handles == nullptr)
        return fail_wait(ERROR_INVALID_PARAMETER);
    ref<object> held[MAXIMUM_WAIT_OBJECTS];
    object* objects[MAXIMUM_WAIT_OBJECTS];
    for (DWORD i = 0; i < count; ++i) {
        held[i] = find_object(handles[i]);
        if (!held[i]) return WAIT_FAILED;
        objects[i] = held[i].get();
        // All of them at once: none twice.
        for (DWORD k = 0; all != FALSE && k < i; ++k)
            if (objects[k] == objects[i]) return fail_wait(ERROR_INVALID_PARAMETER);
    }
    return wait(objects, count, all != FALSE, milliseconds);
}

DWORD WaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL all, DWORD milliseconds) {
    return WaitForMultipleObjectsEx(count, handles, all, milliseconds, FALSE);
}

DWORD WaitForSingleObjectEx(HANDLE handle, DWORD milliseconds, BOOL) {
    const ref<object> held = find_object(handle);
    if (!held) return WAIT_FAILED;
    object* const one = held.get();
    return wait(&one, 1, false, milliseconds);
}

DWORD WaitForSingleObject(HANDLE handle, DWORD milliseconds) {
    return WaitForSingleObjectEx(handle, milliseconds, FALSE);
}

DWORD SignalObjectAndWait(HANDLE to_signal, HANDLE to_wait_on, DWORD milliseconds, BOOL) {
    const ref<object> signalled = find_object(to_signal), waited = find_object(to_wait_on);
    if (!signalled || !waited) return WAIT_FAILED;
    BOOL is_done = FALSE;
    switch (signalled->what) {
        case object::kind::event: is_done = SetEvent(to_signal); break;
        case object::kind::semaphore: is_done = ReleaseSemaphore(to_signal, 1, nullptr); break;
        case object::kind::mutex: is_done = ReleaseMutex(to_signal); break;
        case object::kind::thread: SetLastError(ERROR_INVALID_HANDLE); break;
    }
    if (is_done == FALSE) return WAIT_FAILED;
    object* const one = waited.get();
    return wait(&one, 1, false, milliseconds);
}
