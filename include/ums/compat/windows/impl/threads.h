/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_THREADS_H
#define UMS_WINDOWS_IMPL_THREADS_H

/* impl/threads.h: threads, attribute lists, thread-local slots. */

#include "base.h"

typedef DWORD(WINAPI* PTHREAD_START_ROUTINE)(LPVOID argument);
typedef PTHREAD_START_ROUTINE LPTHREAD_START_ROUTINE;
typedef VOID(NTAPI* PAPCFUNC)(ULONG_PTR parameter);

/* Opaque; as large as InitializeProcThreadAttributeList() says. */
typedef struct _PROC_THREAD_ATTRIBUTE_LIST *PPROC_THREAD_ATTRIBUTE_LIST,
    *LPPROC_THREAD_ATTRIBUTE_LIST;

/* For the attribute list that they hold: there are no processes to start. */
typedef struct _STARTUPINFO {
    DWORD cb;
} STARTUPINFO, STARTUPINFOA, STARTUPINFOW;
typedef struct _STARTUPINFOEX {
    STARTUPINFO StartupInfo;
    LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList;
} STARTUPINFOEX, STARTUPINFOEXA, STARTUPINFOEXW, *LPSTARTUPINFOEX, *LPSTARTUPINFOEXW;

#define CREATE_SUSPENDED 0x00000004u
#define STACK_SIZE_PARAM_IS_A_RESERVATION 0x00010000u
#define STILL_ACTIVE STATUS_PENDING
#define TLS_OUT_OF_INDEXES 0xFFFFFFFFu
#define TLS_MINIMUM_AVAILABLE 64

#define THREAD_TERMINATE 0x0001u
#define THREAD_SUSPEND_RESUME 0x0002u
#define THREAD_QUERY_INFORMATION 0x0040u
#define THREAD_ALL_ACCESS 0x1FFFFFu

#define THREAD_PRIORITY_IDLE (-15)
#define THREAD_PRIORITY_LOWEST (-2)
#define THREAD_PRIORITY_BELOW_NORMAL (-1)
#define THREAD_PRIORITY_NORMAL 0
#define THREAD_PRIORITY_ABOVE_NORMAL 1
#define THREAD_PRIORITY_HIGHEST 2
#define THREAD_PRIORITY_TIME_CRITICAL 15
#define THREAD_PRIORITY_ERROR_RETURN MAXLONG

UMS_WIN_BEGIN

/* The stack is 1 MiB at least, unless the flags have STACK_SIZE_PARAM_IS_A_RESERVATION: without it
 * the size is what Windows commits at once. 0: as much as usual. So for each way to make a
 * thread. */
UMS_WIN(HANDLE, CreateThread,
        (LPSECURITY_ATTRIBUTES attributes, SIZE_T stack_bytes, LPTHREAD_START_ROUTINE start,
         LPVOID argument, DWORD flags, LPDWORD id));
/* With PROC_THREAD_ATTRIBUTE_UMS_THREAD in `list`, a worker (impl/ums.h). */
UMS_WIN(HANDLE, CreateRemoteThreadEx,
        (HANDLE process, LPSECURITY_ATTRIBUTES attributes, SIZE_T stack_bytes,
         LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags,
         LPPROC_THREAD_ATTRIBUTE_LIST list, LPDWORD id));
UMS_WIN(HANDLE, OpenThread, (DWORD access, BOOL inherit, DWORD id));
/* Ends the calling thread; no destructor of its frames runs, those of its thread-locals do. */
UMS_WIN(DECLSPEC_NORETURN VOID, ExitThread, (DWORD code));
/* Ends a thread where it is. Nothing of it is cleaned up: a lock it holds stays locked. */
UMS_WIN(BOOL, TerminateThread, (HANDLE thread, DWORD code));
/* Both return how often the thread was suspended before, or (DWORD)-1. */
UMS_WIN(DWORD, SuspendThread, (HANDLE thread));
UMS_WIN(DWORD, ResumeThread, (HANDLE thread));
UMS_WIN(BOOL, GetExitCodeThread, (HANDLE thread, LPDWORD code));
UMS_WIN(DWORD, GetThreadId, (HANDLE thread));
UMS_WIN(HANDLE, GetCurrentThread, (void)); /* A pseudo-handle. */
UMS_WIN(DWORD, GetCurrentThreadId, (void));
UMS_WIN(HANDLE, GetCurrentProcess, (void)); /* A pseudo-handle. */
UMS_WIN(DWORD, GetCurrentProcessId, (void));
UMS_WIN(BOOL, SwitchToThread, (void));
/* Kept and returned; the kernel is not told. */
UMS_WIN(BOOL, SetThreadPriority, (HANDLE thread, int priority));
UMS_WIN(int, GetThreadPriority, (HANDLE thread));
/* CPUs 0 to 63. The mask before, or 0. A worker runs where its scheduler runs: NOT_SUPPORTED. */
UMS_WIN(DWORD_PTR, SetThreadAffinityMask, (HANDLE thread, DWORD_PTR mask));
UMS_WIN(DWORD_PTR, GetThreadAffinityMask, (HANDLE thread)); /* 0: an error. */
/* Of all threads that the process has now. The system's mask has the CPUs of the process at its
 * start. */
UMS_WIN(BOOL, GetProcessAffinityMask,
        (HANDLE process, DWORD_PTR* process_mask, DWORD_PTR* system_mask));
UMS_WIN(BOOL, SetProcessAffinityMask, (HANDLE process, DWORD_PTR mask));
UMS_WIN(DWORD, SetThreadIdealProcessor, (HANDLE thread, DWORD processor));

UMS_WIN(BOOL, InitializeProcThreadAttributeList,
        (LPPROC_THREAD_ATTRIBUTE_LIST list, DWORD count, DWORD flags, PSIZE_T bytes));
UMS_WIN(BOOL, UpdateProcThreadAttribute,
        (LPPROC_THREAD_ATTRIBUTE_LIST list, DWORD flags, DWORD_PTR attribute, PVOID value,
         SIZE_T bytes, PVOID previous, PSIZE_T returned));
UMS_WIN(VOID, DeleteProcThreadAttributeList, (LPPROC_THREAD_ATTRIBUTE_LIST list));

UMS_WIN(DWORD, TlsAlloc, (void));
UMS_WIN(LPVOID, TlsGetValue, (DWORD index));
UMS_WIN(BOOL, TlsSetValue, (DWORD index, LPVOID value));
UMS_WIN(BOOL, TlsFree, (DWORD index));

UMS_WIN_END

#endif
