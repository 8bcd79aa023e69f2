/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_INTERLOCKED_H
#define UMS_WINDOWS_IMPL_INTERLOCKED_H

/* impl/interlocked.h: atomic operations, all sequentially consistent. The underscored forms are the compiler's on
 * Windows.
 */

#include "base.h"

#define MemoryBarrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#if defined(__x86_64__) || defined(__i386__)
#define YieldProcessor() __builtin_ia32_pause()
#else
#define YieldProcessor() __asm__ volatile("yield" ::: "memory")
#endif
#define _ReadWriteBarrier() __asm__ volatile("" ::: "memory")
#define _ReadBarrier() _ReadWriteBarrier()
#define _WriteBarrier() _ReadWriteBarrier()

UMS_WIN_BEGIN

/* The value after. */
FORCEINLINE LONG InterlockedIncrement(LONG volatile* at) {
    return __atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG InterlockedDecrement(LONG volatile* at) {
    return __atomic_sub_fetch(at, 1, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG64 InterlockedIncrement64(LONG64 volatile* at) {
    return __atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG64 InterlockedDecrement64(LONG64 volatile* at) {
    return __atomic_sub_fetch(at, 1, __ATOMIC_SEQ_CST);
}
FORCEINLINE SHORT InterlockedIncrement16(SHORT volatile* at) {
    return __atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST);
}
FORCEINLINE SHORT InterlockedDecrement16(SHORT volatile* at) {
    return __atomic_sub_fetch(at, 1, __ATOMIC_SEQ_CST);
}

/* The value before. */
FORCEINLINE LONG InterlockedExchange(LONG volatile* at, LONG value) {
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG InterlockedExchangeAdd(LONG volatile* at, LONG value) {
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG InterlockedAnd(LONG volatile* at, LONG value) {
    return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG InterlockedOr(LONG volatile* at, LONG value) {
    return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG InterlockedXor(LONG volatile* at, LONG value) {
    return __atomic_fetch_xor(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG InterlockedCompareExchange(LONG volatile* at, LONG value, LONG expected) {
    __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
FORCEINLINE LONG64 InterlockedExchange64(LONG64 volatile* at, LONG64 value) {
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG64 InterlockedExchangeAdd64(LONG64 volatile* at, LONG64 value) {
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG64 InterlockedAnd64(LONG64 volatile* at, LONG64 value) {
    return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG64 InterlockedOr64(LONG64 volatile* at, LONG64 value) {
    return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG64 InterlockedXor64(LONG64 volatile* at, LONG64 value) {
    return __atomic_fetch_xor(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG64 InterlockedCompareExchange64(LONG64 volatile* at, LONG64 value,
                                                LONG64 expected) {
    __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
FORCEINLINE SHORT InterlockedExchange16(SHORT volatile* at, SHORT value) {
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE SHORT InterlockedAnd16(SHORT volatile* at, SHORT value) {
    return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE SHORT InterlockedOr16(SHORT volatile* at, SHORT value) {
    return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE SHORT InterlockedXor16(SHORT volatile* at, SHORT value) {
    return __atomic_fetch_xor(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE SHORT InterlockedCompareExchange16(SHORT volatile* at, SHORT value, SHORT expected) {
    __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
FORCEINLINE PVOID InterlockedExchangePointer(PVOID volatile* at, PVOID value) {
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
FORCEINLINE PVOID InterlockedCompareExchangePointer(PVOID volatile* at, PVOID value,
                                                    PVOID expected) {
    __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
FORCEINLINE BOOLEAN InterlockedBitTestAndSet(LONG volatile* at, LONG bit) {
    const LONG mask = (LONG)(1u << (bit & 31));
    return (BOOLEAN)((__atomic_fetch_or(at, mask, __ATOMIC_SEQ_CST) & mask) != 0);
}
FORCEINLINE BOOLEAN InterlockedBitTestAndReset(LONG volatile* at, LONG bit) {
    const LONG mask = (LONG)(1u << (bit & 31));
    return (BOOLEAN)((__atomic_fetch_and(at, ~mask, __ATOMIC_SEQ_CST) & mask) != 0);
}

/* Lists that several threads push to and pop from. An entry must stay readable while the list is in use. */
typedef struct DECLSPEC_ALIGN(16) _SLIST_ENTRY {
    struct _SLIST_ENTRY* Next;
} SLIST_ENTRY, *PSLIST_ENTRY;

typedef union DECLSPEC_ALIGN(16) _SLIST_HEADER {
    __extension__ struct {
        PSLIST_ENTRY First;
        ULONG Depth;
        ULONG State;
    };
} SLIST_HEADER, *PSLIST_HEADER;

UMS_WIN(VOID, InitializeSListHead, (PSLIST_HEADER head));
UMS_WIN(PSLIST_ENTRY, InterlockedPushEntrySList,
        (PSLIST_HEADER head, PSLIST_ENTRY entry)); /* Before. */
UMS_WIN(PSLIST_ENTRY, InterlockedPopEntrySList, (PSLIST_HEADER head));
UMS_WIN(PSLIST_ENTRY, InterlockedFlushSList, (PSLIST_HEADER head));
UMS_WIN(USHORT, QueryDepthSList, (PSLIST_HEADER head));

UMS_WIN_END

#define InterlockedAdd(at, value) (InterlockedExchangeAdd((at), (value)) + (value))
#define InterlockedAdd64(at, value) (InterlockedExchangeAdd64((at), (value)) + (value))
#define InterlockedIncrementAcquire InterlockedIncrement
#define InterlockedIncrementRelease InterlockedIncrement
#define InterlockedDecrementAcquire InterlockedDecrement
#define InterlockedDecrementRelease InterlockedDecrement
#define InterlockedExchangeAcquire InterlockedExchange
#define InterlockedCompareExchangeAcquire InterlockedCompareExchange
#define InterlockedCompareExchangeRelease InterlockedCompareExchange
#define _InterlockedIncrement InterlockedIncrement
#define _InterlockedIncrement64 InterlockedIncrement64
#define _InterlockedDecrement InterlockedDecrement
#define _InterlockedDecrement64 InterlockedDecrement64
#define _InterlockedExchange InterlockedExchange
#define _InterlockedExchange64 InterlockedExchange64
#define _InterlockedExchangeAdd InterlockedExchangeAdd
#define _InterlockedExchangeAdd64 InterlockedExchangeAdd64
#define _InterlockedAnd InterlockedAnd
#define _InterlockedAnd64 InterlockedAnd64
#define _InterlockedOr InterlockedOr
#define _InterlockedOr64 InterlockedOr64
#define _InterlockedXor InterlockedXor
#define _InterlockedXor64 InterlockedXor64
#define _InterlockedCompareExchange InterlockedCompareExchange
#define _InterlockedCompareExchange64 InterlockedCompareExchange64
#define _InterlockedExchangePointer InterlockedExchangePointer
#define _InterlockedCompareExchangePointer InterlockedCompareExchangePointer

#endif
