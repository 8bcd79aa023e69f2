/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_FIBERS_H
#define UMS_WINDOWS_IMPL_FIBERS_H

/* impl/fibers.h: Windows' fibers, which a thread switches between by itself. They have no
 * scheduler, and share the thread-locals and the last error of the thread that runs them.
 */

#include "base.h"

typedef VOID(CALLBACK* PFIBER_START_ROUTINE)(LPVOID parameter);
typedef PFIBER_START_ROUTINE LPFIBER_START_ROUTINE;

#define FIBER_FLAG_FLOAT_SWITCH 1u /* Always done. */

UMS_WIN_BEGIN

/* The fiber that the calling thread becomes. NULL, ALREADY_FIBER: it is one. */
UMS_WIN(LPVOID, ConvertThreadToFiber, (LPVOID parameter));
UMS_WIN(LPVOID, ConvertThreadToFiberEx, (LPVOID parameter, DWORD flags));
UMS_WIN(BOOL, ConvertFiberToThread, (void));
/* The stack is 1 MiB unless another size is reserved, and no smaller than what is committed. */
UMS_WIN(LPVOID, CreateFiber, (SIZE_T commit_bytes, LPFIBER_START_ROUTINE start, LPVOID parameter));
UMS_WIN(LPVOID, CreateFiberEx,
        (SIZE_T commit_bytes, SIZE_T reserve_bytes, DWORD flags, LPFIBER_START_ROUTINE start,
         LPVOID parameter));
/* A fiber whose function returns ends its thread, as on Windows. */
UMS_WIN(VOID, SwitchToFiber, (LPVOID fiber));
/* Deleting the running fiber ends its thread. */
UMS_WIN(VOID, DeleteFiber, (LPVOID fiber));
UMS_WIN(BOOL, IsThreadAFiber, (void));
UMS_WIN(PVOID, GetCurrentFiber, (void));
UMS_WIN(PVOID, GetFiberData, (void));

UMS_WIN_END

#endif
