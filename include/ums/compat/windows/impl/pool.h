/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_POOL_H
#define UMS_WINDOWS_IMPL_POOL_H

/* impl/pool.h: the thread pool, and timers whose functions run on it. */

#include "base.h"

typedef VOID(NTAPI* WAITORTIMERCALLBACKFUNC)(PVOID context, BOOLEAN is_timer);
typedef WAITORTIMERCALLBACKFUNC WAITORTIMERCALLBACK;
typedef DWORD(WINAPI* UMS_WIN_WORK_ITEM)(LPVOID context);

#define WT_EXECUTEDEFAULT 0x00000000u
#define WT_EXECUTEINIOTHREAD 0x00000001u
#define WT_EXECUTEONLYONCE 0x00000008u
#define WT_EXECUTELONGFUNCTION 0x00000010u
#define WT_EXECUTEINTIMERTHREAD 0x00000020u
#define WT_EXECUTEINPERSISTENTTHREAD 0x00000080u

typedef struct _TP_CALLBACK_INSTANCE* PTP_CALLBACK_INSTANCE;
typedef struct _TP_WORK* PTP_WORK;
typedef struct _TP_CALLBACK_ENVIRON* PTP_CALLBACK_ENVIRON; /* Only NULL: the process's pool. */
typedef VOID(NTAPI* PTP_SIMPLE_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context);
typedef VOID(NTAPI* PTP_WORK_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context,
                                       PTP_WORK work);

UMS_WIN_BEGIN

/* The pool has a thread for each function that runs, 500 at most. One that has nothing to do ends
 * after a second. */
UMS_WIN(BOOL, QueueUserWorkItem, (UMS_WIN_WORK_ITEM function, PVOID context, ULONG flags));
UMS_WIN(BOOL, TrySubmitThreadpoolCallback,
        (PTP_SIMPLE_CALLBACK function, PVOID context, PTP_CALLBACK_ENVIRON environment));
UMS_WIN(PTP_WORK, CreateThreadpoolWork,
        (PTP_WORK_CALLBACK function, PVOID context, PTP_CALLBACK_ENVIRON environment));
UMS_WIN(VOID, SubmitThreadpoolWork, (PTP_WORK work));
/* `cancel`: those that have not begun never do. */
UMS_WIN(VOID, WaitForThreadpoolWorkCallbacks, (PTP_WORK work, BOOL cancel));
UMS_WIN(VOID, CloseThreadpoolWork, (PTP_WORK work)); /* Freed when the last has ended. */

UMS_WIN(HANDLE, CreateTimerQueue, (void));
/* `queue` NULL: the process's own. Calls function(context, TRUE) after `due` and, unless `period`
 * is 0, every `period` milliseconds, on a thread of the pool. */
UMS_WIN(BOOL, CreateTimerQueueTimer,
        (PHANDLE timer, HANDLE queue, WAITORTIMERCALLBACK function, PVOID context, DWORD due,
         DWORD period, ULONG flags));
UMS_WIN(BOOL, ChangeTimerQueueTimer, (HANDLE queue, HANDLE timer, ULONG due, ULONG period));
/* INVALID_HANDLE_VALUE: waits until its function does not run. NULL: FALSE, IO_PENDING, if it does.
 * An event: the same, and it is set when it has ended, at once if it does not run. */
UMS_WIN(BOOL, DeleteTimerQueueTimer, (HANDLE queue, HANDLE timer, HANDLE event));
/* The queue and its timers; INVALID_HANDLE_VALUE and NULL as above, an event is not supported. */
UMS_WIN(BOOL, DeleteTimerQueueEx, (HANDLE queue, HANDLE event));
UMS_WIN(BOOL, DeleteTimerQueue, (HANDLE queue)); /* As DeleteTimerQueueEx() with NULL. */

UMS_WIN_END

#endif
