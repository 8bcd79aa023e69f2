/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_HANDLES_H
#define UMS_WINDOWS_IMPL_HANDLES_H

/* impl/handles.h: handles, waits, events, semaphores, mutexes.
 *
 * Names live in this process: an object with a name is found by the process that made it.
 */

#include "base.h"

#define WAIT_OBJECT_0 0u
#define WAIT_ABANDONED 0x80u
#define WAIT_ABANDONED_0 0x80u
#define WAIT_IO_COMPLETION 0xC0u
#define WAIT_FAILED 0xFFFFFFFFu
#define MAXIMUM_WAIT_OBJECTS 64

#define DELETE 0x00010000u
#define SYNCHRONIZE 0x00100000u
#define STANDARD_RIGHTS_REQUIRED 0x000F0000u
#define EVENT_MODIFY_STATE 0x0002u
#define EVENT_ALL_ACCESS 0x1F0003u
#define MUTEX_MODIFY_STATE 0x0001u
#define MUTEX_ALL_ACCESS 0x1F0001u
#define SEMAPHORE_MODIFY_STATE 0x0002u
#define SEMAPHORE_ALL_ACCESS 0x1F0003u
#define DUPLICATE_CLOSE_SOURCE 1u
#define DUPLICATE_SAME_ACCESS 2u
#define HANDLE_FLAG_INHERIT 1u

UMS_WIN_BEGIN

/* FALSE, INVALID_HANDLE: not a handle, or closed already. */
UMS_WIN(BOOL, CloseHandle, (HANDLE handle));
/* Both processes are this one. A pseudo-handle becomes a real one. */
UMS_WIN(BOOL, DuplicateHandle,
        (HANDLE source_process, HANDLE source, HANDLE target_process, LPHANDLE target, DWORD access,
         BOOL inherit, DWORD options));

/* An alertable wait is an ordinary one: there are no APCs. */
UMS_WIN(DWORD, WaitForSingleObject, (HANDLE handle, DWORD milliseconds));
UMS_WIN(DWORD, WaitForSingleObjectEx, (HANDLE handle, DWORD milliseconds, BOOL alertable));
UMS_WIN(DWORD, WaitForMultipleObjects,
        (DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds));
UMS_WIN(DWORD, WaitForMultipleObjectsEx,
        (DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds, BOOL alertable));
UMS_WIN(DWORD, SignalObjectAndWait,
        (HANDLE to_signal, HANDLE to_wait_on, DWORD milliseconds, BOOL alertable));

UMS_WIN(HANDLE, CreateEventA,
        (LPSECURITY_ATTRIBUTES attributes, BOOL manual_reset, BOOL is_set, LPCSTR name));
UMS_WIN(HANDLE, CreateEventW,
        (LPSECURITY_ATTRIBUTES attributes, BOOL manual_reset, BOOL is_set, LPCWSTR name));
UMS_WIN(HANDLE, OpenEventA, (DWORD access, BOOL inherit, LPCSTR name));
UMS_WIN(HANDLE, OpenEventW, (DWORD access, BOOL inherit, LPCWSTR name));
UMS_WIN(BOOL, SetEvent, (HANDLE event));
UMS_WIN(BOOL, ResetEvent, (HANDLE event));
/* Releases those who wait now: all of a manual-reset event, one of another. */
UMS_WIN(BOOL, PulseEvent, (HANDLE event));

UMS_WIN(HANDLE, CreateSemaphoreA,
        (LPSECURITY_ATTRIBUTES attributes, LONG initial, LONG maximum, LPCSTR name));
UMS_WIN(HANDLE, CreateSemaphoreW,
        (LPSECURITY_ATTRIBUTES attributes, LONG initial, LONG maximum, LPCWSTR name));
UMS_WIN(HANDLE, OpenSemaphoreA, (DWORD access, BOOL inherit, LPCSTR name));
UMS_WIN(HANDLE, OpenSemaphoreW, (DWORD access, BOOL inherit, LPCWSTR name));
UMS_WIN(BOOL, ReleaseSemaphore, (HANDLE semaphore, LONG count, LPLONG previous));

UMS_WIN(HANDLE, CreateMutexA, (LPSECURITY_ATTRIBUTES attributes, BOOL is_owned, LPCSTR name));
UMS_WIN(HANDLE, CreateMutexW, (LPSECURITY_ATTRIBUTES attributes, BOOL is_owned, LPCWSTR name));
UMS_WIN(HANDLE, OpenMutexA, (DWORD access, BOOL inherit, LPCSTR name));
UMS_WIN(HANDLE, OpenMutexW, (DWORD access, BOOL inherit, LPCWSTR name));
UMS_WIN(BOOL, ReleaseMutex, (HANDLE mutex));

UMS_WIN_END

#define CreateEvent UMS_WIN_TEXT(CreateEvent)
#define OpenEvent UMS_WIN_TEXT(OpenEvent)
#define CreateSemaphore UMS_WIN_TEXT(CreateSemaphore)
#define OpenSemaphore UMS_WIN_TEXT(OpenSemaphore)
#define CreateMutex UMS_WIN_TEXT(CreateMutex)
#define OpenMutex UMS_WIN_TEXT(OpenMutex)

#endif
