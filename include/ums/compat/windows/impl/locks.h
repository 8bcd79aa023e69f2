/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_LOCKS_H
#define UMS_WINDOWS_IMPL_LOCKS_H

/* impl/locks.h: critical sections, slim reader-writer locks, condition variables, one-time
 * initialisation.
 *
 * The members are private. All zero is a free SRW lock, condition variable and once.
 */

#include "base.h"

typedef struct _RTL_CRITICAL_SECTION {
    ULONG State;
    ULONG OwningThreadId;
    LONG RecursionCount;
    ULONG SpinCount;
    ULONG_PTR Reserved[3];
} RTL_CRITICAL_SECTION, *PRTL_CRITICAL_SECTION, CRITICAL_SECTION, *PCRITICAL_SECTION,
    *LPCRITICAL_SECTION;

typedef struct _RTL_SRWLOCK {
    ULONG State;
    ULONG Reserved;
} RTL_SRWLOCK, *PRTL_SRWLOCK, SRWLOCK, *PSRWLOCK;

typedef struct _RTL_CONDITION_VARIABLE {
    ULONG Epoch;
    ULONG Sleepers;
} RTL_CONDITION_VARIABLE, *PRTL_CONDITION_VARIABLE, CONDITION_VARIABLE, *PCONDITION_VARIABLE;

typedef struct _RTL_RUN_ONCE {
    ULONG State;
    ULONG Reserved;
    PVOID Context;
} RTL_RUN_ONCE, *PRTL_RUN_ONCE, INIT_ONCE, *PINIT_ONCE, *LPINIT_ONCE;

typedef BOOL(CALLBACK* PINIT_ONCE_FN)(PINIT_ONCE once, PVOID parameter, PVOID* context);

#define RTL_SRWLOCK_INIT \
    { 0, 0 }
#define SRWLOCK_INIT RTL_SRWLOCK_INIT
#define RTL_CONDITION_VARIABLE_INIT \
    { 0, 0 }
#define CONDITION_VARIABLE_INIT RTL_CONDITION_VARIABLE_INIT
#define RTL_RUN_ONCE_INIT \
    { 0, 0, NULL }
#define INIT_ONCE_STATIC_INIT RTL_RUN_ONCE_INIT
#define CONDITION_VARIABLE_LOCKMODE_SHARED 1u
#define CRITICAL_SECTION_NO_DEBUG_INFO 0x01000000u

UMS_WIN_BEGIN

UMS_WIN(VOID, InitializeCriticalSection, (LPCRITICAL_SECTION section));
UMS_WIN(BOOL, InitializeCriticalSectionAndSpinCount, (LPCRITICAL_SECTION section, DWORD spins));
UMS_WIN(BOOL, InitializeCriticalSectionEx, (LPCRITICAL_SECTION section, DWORD spins, DWORD flags));
UMS_WIN(DWORD, SetCriticalSectionSpinCount, (LPCRITICAL_SECTION section, DWORD spins));
UMS_WIN(VOID, DeleteCriticalSection, (LPCRITICAL_SECTION section));
UMS_WIN(VOID, EnterCriticalSection, (LPCRITICAL_SECTION section));
UMS_WIN(BOOL, TryEnterCriticalSection, (LPCRITICAL_SECTION section));
UMS_WIN(VOID, LeaveCriticalSection, (LPCRITICAL_SECTION section));

UMS_WIN(VOID, InitializeSRWLock, (PSRWLOCK lock));
UMS_WIN(VOID, AcquireSRWLockExclusive, (PSRWLOCK lock));
UMS_WIN(VOID, AcquireSRWLockShared, (PSRWLOCK lock));
UMS_WIN(BOOLEAN, TryAcquireSRWLockExclusive, (PSRWLOCK lock));
UMS_WIN(BOOLEAN, TryAcquireSRWLockShared, (PSRWLOCK lock));
UMS_WIN(VOID, ReleaseSRWLockExclusive, (PSRWLOCK lock));
UMS_WIN(VOID, ReleaseSRWLockShared, (PSRWLOCK lock));

UMS_WIN(VOID, InitializeConditionVariable, (PCONDITION_VARIABLE variable));
/* FALSE, TIMEOUT: nothing came in time. May return TRUE without a reason, as on Windows. */
UMS_WIN(BOOL, SleepConditionVariableCS,
        (PCONDITION_VARIABLE variable, PCRITICAL_SECTION section, DWORD milliseconds));
UMS_WIN(BOOL, SleepConditionVariableSRW,
        (PCONDITION_VARIABLE variable, PSRWLOCK lock, DWORD milliseconds, ULONG flags));
UMS_WIN(VOID, WakeConditionVariable, (PCONDITION_VARIABLE variable));
UMS_WIN(VOID, WakeAllConditionVariable, (PCONDITION_VARIABLE variable));

UMS_WIN(VOID, InitOnceInitialize, (PINIT_ONCE once));
UMS_WIN(BOOL, InitOnceExecuteOnce,
        (PINIT_ONCE once, PINIT_ONCE_FN function, PVOID parameter, LPVOID* context));

UMS_WIN_END

#endif
