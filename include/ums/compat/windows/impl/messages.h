/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_MESSAGES_H
#define UMS_WINDOWS_IMPL_MESSAGES_H

/* impl/messages.h: the message loop, for programs that have one: there are never any messages. */

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
UMS_WIN(BOOL, PeekMessageW, (LPMSG message, HWND window, UINT first, UINT last, UINT remove));
UMS_WIN(BOOL, GetMessageA, (LPMSG message, HWND window, UINT first, UINT last)); /* -1 */
UMS_WIN(BOOL, GetMessageW, (LPMSG message, HWND window, UINT first, UINT last));
UMS_WIN(BOOL, TranslateMessage, (const MSG* message));
UMS_WIN(LRESULT, DispatchMessageA, (const MSG* message));
UMS_WIN(LRESULT, DispatchMessageW, (const MSG* message));
/* WaitForMultipleObjects(); `wake_mask` has no effect. */
UMS_WIN(DWORD, MsgWaitForMultipleObjects,
        (DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds, DWORD wake_mask));

UMS_WIN_END

#ifdef UNICODE
#define PeekMessage PeekMessageW
#define GetMessage GetMessageW
#define DispatchMessage DispatchMessageW
#else
#define PeekMessage PeekMessageA
#define GetMessage GetMessageA
#define DispatchMessage DispatchMessageA
#endif

#endif
