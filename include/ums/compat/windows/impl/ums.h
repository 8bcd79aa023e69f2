/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_UMS_H
#define UMS_WINDOWS_IMPL_UMS_H

/* impl/ums.h: user-mode scheduling. */

#include "base.h"
#include "threads.h"

#define RTL_UMS_VERSION 0x0100
#define UMS_VERSION RTL_UMS_VERSION

typedef PVOID PUMS_CONTEXT;
typedef PVOID PUMS_COMPLETION_LIST;

typedef enum _RTL_UMS_THREAD_INFO_CLASS {
    UmsThreadInvalidInfoClass = 0,
    UmsThreadUserContext,
    UmsThreadPriority, /* Reserved. */
    UmsThreadAffinity, /* Reserved. */
    UmsThreadTeb,
    UmsThreadIsSuspended,
    UmsThreadIsTerminated,
    UmsThreadMaxInfoClass
} RTL_UMS_THREAD_INFO_CLASS,
    *PRTL_UMS_THREAD_INFO_CLASS, UMS_THREAD_INFO_CLASS, *PUMS_THREAD_INFO_CLASS;

typedef enum _RTL_UMS_SCHEDULER_REASON {
    UmsSchedulerStartup = 0,
    UmsSchedulerThreadBlocked,
    UmsSchedulerThreadYield
} RTL_UMS_SCHEDULER_REASON,
    *PRTL_UMS_SCHEDULER_REASON, UMS_SCHEDULER_REASON, *PUMS_SCHEDULER_REASON;

typedef VOID(NTAPI RTL_UMS_SCHEDULER_ENTRY_POINT)(RTL_UMS_SCHEDULER_REASON reason,
                                                  ULONG_PTR activation_payload,
                                                  PVOID scheduler_param);
typedef RTL_UMS_SCHEDULER_ENTRY_POINT *PRTL_UMS_SCHEDULER_ENTRY_POINT, *PUMS_SCHEDULER_ENTRY_POINT;

typedef struct _UMS_SCHEDULER_STARTUP_INFO {
    ULONG UmsVersion;
    PUMS_COMPLETION_LIST CompletionList;
    PUMS_SCHEDULER_ENTRY_POINT SchedulerProc;
    PVOID SchedulerParam;
} UMS_SCHEDULER_STARTUP_INFO, *PUMS_SCHEDULER_STARTUP_INFO;

typedef struct _UMS_CREATE_THREAD_ATTRIBUTES {
    DWORD UmsVersion;
    PVOID UmsContext;
    PVOID UmsCompletionList;
} UMS_CREATE_THREAD_ATTRIBUTES, *PUMS_CREATE_THREAD_ATTRIBUTES;

typedef struct _UMS_SYSTEM_THREAD_INFORMATION {
    ULONG UmsVersion;
    __extension__ union {
        __extension__ struct {
            ULONG IsUmsSchedulerThread : 1;
            ULONG IsUmsWorkerThread : 1;
        };
        ULONG ThreadUmsFlags;
    };
} UMS_SYSTEM_THREAD_INFORMATION, *PUMS_SYSTEM_THREAD_INFORMATION;

#define PROC_THREAD_ATTRIBUTE_UMS_THREAD 0x00030006u

UMS_WIN_BEGIN

UMS_WIN(BOOL, CreateUmsCompletionList, (PUMS_COMPLETION_LIST * list));
/* INVALID_PARAMETER: something is on the list. */
UMS_WIN(BOOL, DeleteUmsCompletionList, (PUMS_COMPLETION_LIST list));
/* An auto-reset event that the caller closes. */
UMS_WIN(BOOL, GetUmsCompletionListEvent, (PUMS_COMPLETION_LIST list, PHANDLE event));
/* TIMEOUT: nothing came in time. */
UMS_WIN(BOOL, DequeueUmsCompletionListItems,
        (PUMS_COMPLETION_LIST list, DWORD milliseconds, PUMS_CONTEXT* first));
UMS_WIN(PUMS_CONTEXT, GetNextUmsListItem, (PUMS_CONTEXT context));

UMS_WIN(BOOL, CreateUmsThreadContext, (PUMS_CONTEXT * context));
/* INVALID_PARAMETER: its thread has not ended. */
UMS_WIN(BOOL, DeleteUmsThreadContext, (PUMS_CONTEXT context));
UMS_WIN(BOOL, QueryUmsThreadInformation,
        (PUMS_CONTEXT context, UMS_THREAD_INFO_CLASS what, PVOID into, ULONG bytes,
         PULONG returned));
UMS_WIN(BOOL, SetUmsThreadInformation,
        (PUMS_CONTEXT context, UMS_THREAD_INFO_CLASS what, PVOID from, ULONG bytes));
UMS_WIN(PUMS_CONTEXT, GetCurrentUmsThread, (void));

UMS_WIN(BOOL, EnterUmsSchedulingMode, (PUMS_SCHEDULER_STARTUP_INFO info));
/* Does not return if it succeeds. RETRY: once more. */
UMS_WIN(BOOL, ExecuteUmsThread, (PUMS_CONTEXT context));
UMS_WIN(BOOL, UmsThreadYield, (PVOID parameter));
UMS_WIN(BOOL, GetUmsSystemThreadInformation,
        (HANDLE thread, PUMS_SYSTEM_THREAD_INFORMATION information));

UMS_WIN_END

#endif
