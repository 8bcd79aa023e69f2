// SPDX-License-Identifier: MIT

// There are no windows and so no messages.

#include "windows/last_error.hpp"

using namespace ums::windows;

namespace {
// What GetMessage() returns for an error.
BOOL no_messages() noexcept {
    SetLastError(ERROR_NOT_SUPPORTED);
    return -1;
}
}  // namespace

BOOL PeekMessageA(LPMSG, HWND, UINT, UINT, UINT) { return FALSE; }
BOOL PeekMessageW(LPMSG, HWND, UINT, UINT, UINT) { return FALSE; }
BOOL GetMessageA(LPMSG, HWND, UINT, UINT) { return no_messages(); }
BOOL GetMessageW(LPMSG, HWND, UINT, UINT) { return no_messages(); }
BOOL TranslateMessage(const MSG*) { return FALSE; }
LRESULT DispatchMessageA(const MSG*) { return 0; }
LRESULT DispatchMessageW(const MSG*) { return 0; }

DWORD MsgWaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL all, DWORD milliseconds,
                                DWORD) {
    if (count == 0) return Sleep(milliseconds), DWORD{WAIT_TIMEOUT};  // For messages only.
    return WaitForMultipleObjects(count, handles, all, milliseconds);
}
