/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_MESSAGES_H
#define UMS_WINDOWS_IMPL_MESSAGES_H

/* impl/messages.h: the message loop, for programs that have one. A thread has a queue, of what was
 * posted to it; there are no windows. */

#include "base.h"

typedef UINT_PTR WPARAM;
typedef LONG_PTR LPARAM, LRESULT;

typedef struct tagPOINT {
    LONG x;
    LONG y;
} POINT, *PPOINT;

typedef struct tagMSG {
    HWND hwnd;
    UINT message;
    WPARAM wParam;
    LPARAM lParam;
    DWORD time;
    POINT pt;
} MSG, *PMSG, *LPMSG;

#define PM_NOREMOVE 0u
#define PM_REMOVE 1u
#define QS_ALLINPUT 0x04FFu
#define WM_NULL 0x0000u
#define WM_QUIT 0x0012u
#define WM_USER 0x0400u

UMS_WIN_BEGIN

UMS_WIN(BOOL, PeekMessageA, (LPMSG message, HWND window, UINT first, UINT last, UINT remove));
/* Waits for the next message. FALSE: it is the one of PostQuitMessage(). */
UMS_WIN(BOOL, GetMessageA, (LPMSG message, HWND window, UINT first, UINT last));
UMS_WIN(VOID, PostQuitMessage, (int code)); /* To the calling thread. */
/* FALSE, INVALID_THREAD_ID: there is no such thread. */
UMS_WIN(BOOL, PostThreadMessageA, (DWORD thread, UINT message, WPARAM wparam, LPARAM lparam));
UMS_WIN(BOOL, TranslateMessage, (const MSG* message));
UMS_WIN(LRESULT, DispatchMessageA, (const MSG* message));
/* Also ends, with WAIT_OBJECT_0 + count, when a message is there. `wake_mask` has no effect. */
UMS_WIN(DWORD, MsgWaitForMultipleObjects,
        (DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds, DWORD wake_mask));

UMS_WIN_END

/* They hold no text. */
#define PeekMessageW PeekMessageA
#define GetMessageW GetMessageA
#define PostThreadMessageW PostThreadMessageA
#define DispatchMessageW DispatchMessageA
#define PeekMessage UMS_WIN_TEXT(PeekMessage)
#define GetMessage UMS_WIN_TEXT(GetMessage)
#define PostThreadMessage UMS_WIN_TEXT(PostThreadMessage)
#define DispatchMessage UMS_WIN_TEXT(DispatchMessage)

#endif
