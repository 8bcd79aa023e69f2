// SPDX-License-Identifier: MIT

// Message queues of threads. There are no windows, so a queue holds only what was posted to the
// thread.

#include <climits>
#include <new>

#include "windows/event.hpp"
#include "windows/handle_table.hpp"
#include "windows/last_error.hpp"
#include "windows/thread.hpp"
#include "windows/thread_ids.hpp"

using namespace ums::windows;

namespace {

BOOL post(thread& to, UINT message, WPARAM wparam, LPARAM lparam) noexcept {
    try {
        HANDLE arrived = nullptr;
        {
            const guard hold{dispatcher};
            if (to.has_ended) return fail(ERROR_INVALID_THREAD_ID);
            to.posted.push_back({nullptr, message, wparam, lparam, GetTickCount(), {0, 0}});
            arrived = to.arrived;
        }
        if (arrived != nullptr) SetEvent(arrived);
        return TRUE;
    } catch (const std::bad_alloc&) {
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
}

// Returns a handle that is signalled once a message has come since the caller looked. Called by the
// thread itself.
HANDLE arrivals(thread& self) {
    if (self.arrived == nullptr) {
        const HANDLE made = CreateEventA(nullptr, FALSE, FALSE, nullptr);
        const guard hold{dispatcher};
        self.arrived = made;
    }
    return self.arrived;
}

// Finds the first message in the range (0 to 0 means any), or the one that quits.
bool find(LPMSG into, UINT first, UINT last, bool is_taken) noexcept {
    if (first == 0 && last == 0) last = UINT_MAX;
    thread& self = thread::current();
    const guard hold{dispatcher};
    for (auto at = self.posted.begin(); at != self.posted.end(); ++at) {
        if ((at->message < first || at->message > last) && at->message != WM_QUIT) continue;
        *into = *at;
        if (is_taken) self.posted.erase(at);
        return true;
    }
    return false;
}

}  // namespace

BOOL PeekMessageA(LPMSG message, HWND, UINT first, UINT last, UINT remove) {
    return find(message, first, last, (remove & PM_REMOVE) != 0) ? TRUE : FALSE;
}
BOOL GetMessageA(LPMSG message, HWND, UINT first, UINT last) {
    const HANDLE arrived = arrivals(thread::current());
    // A message that comes between the look and the wait leaves the event set.
    while (!find(message, first, last, true))
        if (WaitForSingleObject(arrived, INFINITE) != WAIT_OBJECT_0) return -1;
    return message->message != WM_QUIT ? TRUE : FALSE;
}
VOID PostQuitMessage(int code) { post(thread::current(), WM_QUIT, static_cast<WPARAM>(code), 0); }
BOOL PostThreadMessageA(DWORD id, UINT message, WPARAM wparam, LPARAM lparam) {
    const ref<thread> to = find_thread(id);
    return to ? post(*to, message, wparam, lparam) : fail(ERROR_INVALID_THREAD_ID);
}
BOOL TranslateMessage(const MSG*) { return FALSE; }
LRESULT DispatchMessageA(const MSG*) { return 0; }

DWORD MsgWaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL all, DWORD milliseconds,
                                DWORD) {
    if (count >= MAXIMUM_WAIT_OBJECTS || (count != 0 && handles == nullptr))
        return SetLastError(ERROR_INVALID_PARAMETER), WAIT_FAILED;
    HANDLE both[MAXIMUM_WAIT_OBJECTS] = {};
    for (DWORD i = 0; i < count; ++i) both[i] = handles[i];
    both[count] = arrivals(thread::current());
    ResetEvent(both[count]);
    MSG first;
    if (find(&first, 0, 0, false)) SetEvent(both[count]);
    return WaitForMultipleObjects(count + 1, both, all, milliseconds);
}
