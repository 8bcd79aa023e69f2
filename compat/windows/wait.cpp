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

static_assert(timed_out == WAIT_TIMEOUT && abandoned == WAIT_ABANDONED_0 && failed == WAIT_FAILED);

ums::compat::nanoseconds limit_of(DWORD milliseconds) noexcept {
    return milliseconds == 0 ? 0 : deadline_of(milliseconds);
}

// Waits for what `self.wait.objects` names. A thread that was told that another has ended finds
// nothing left of it.
DWORD wait(thread& self, bool all, DWORD milliseconds) noexcept {
    waiter& w = self.wait;
    w.all = all;
    const DWORD result = w.wait(self, limit_of(milliseconds));
    for (std::size_t i = 0; i < w.objects.size() && result < abandoned; ++i)
        if ((all || i == result) && w.objects[i]->what == object::kind::thread)
            static_cast<thread*>(w.objects[i].get())->join();
    const uninterrupted section;
    w.objects.clear();
    return result;
}

// Fails the wait and drops the objects that were added.
DWORD refuse(waiter& w) noexcept {
    const uninterrupted section;
    w.objects.clear();
    return WAIT_FAILED;
}

// Adds the object of a handle. False: the handle stands for none.
bool add(waiter& w, HANDLE handle) noexcept {
    const uninterrupted section;
    ref<object> found = find_object(handle);
    if (!found) return refuse(w), false;
    w.objects.push_back(std::move(found));
    return true;
}

}  // namespace

DWORD WaitForMultipleObjectsEx(DWORD count, const HANDLE* handles, BOOL all, DWORD milliseconds,
                               BOOL) {
    if (count == 0 || count > MAXIMUM_WAIT_OBJECTS || handles == nullptr)
        return fail_wait(ERROR_INVALID_PARAMETER);
    thread& self = thread::current();
    auto& objects = self.wait.objects;
    for (DWORD i = 0; i < count; ++i) {
        if (!add(self.wait, handles[i])) return WAIT_FAILED;
        // Waiting for all of them at once allows none twice.
        for (DWORD k = 0; all != FALSE && k < i; ++k)
            if (objects[k].get() == objects[i].get())
                return SetLastError(ERROR_INVALID_PARAMETER), refuse(self.wait);
    }
    return wait(self, all != FALSE, milliseconds);
}

DWORD WaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL all, DWORD milliseconds) {
    return WaitForMultipleObjectsEx(count, handles, all, milliseconds, FALSE);
}

DWORD WaitForSingleObjectEx(HANDLE handle, DWORD milliseconds, BOOL) {
    thread& self = thread::current();
    return add(self.wait, handle) ? wait(self, false, milliseconds) : WAIT_FAILED;
}

DWORD WaitForSingleObject(HANDLE handle, DWORD milliseconds) {
    return WaitForSingleObjectEx(handle, milliseconds, FALSE);
}

DWORD SignalObjectAndWait(HANDLE to_signal, HANDLE to_wait_on, DWORD milliseconds, BOOL) {
    thread& self = thread::current();
    object::kind what{};
    {
        const uninterrupted section;
        const ref<object> signalled = find_object(to_signal);
        if (!signalled) return WAIT_FAILED;
        what = signalled->what;
    }
    if (!add(self.wait, to_wait_on)) return WAIT_FAILED;
    BOOL is_done = FALSE;
    switch (what) {
        case object::kind::event:
            is_done = SetEvent(to_signal);
            break;
        case object::kind::semaphore:
            is_done = ReleaseSemaphore(to_signal, 1, nullptr);
            break;
        case object::kind::mutex:
            is_done = ReleaseMutex(to_signal);
            break;
        case object::kind::thread:
            SetLastError(ERROR_INVALID_HANDLE);
            break;
    }
    if (is_done == FALSE) return refuse(self.wait);
    return wait(self, false, milliseconds);
}
