/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_INTERLOCKED_H
#define UMS_WINDOWS_IMPL_INTERLOCKED_H

/* impl/interlocked.h: atomic operations, all sequentially consistent. The underscored forms are the
 * compiler's on Windows.
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

/* The functions of one width. The first three return the value after, the others the value
 * before. */
#define UMS_WIN_INTERLOCKED(type, bits)                                                           \
    UMS_WIN_INLINE type InterlockedIncrement##bits(type volatile* at) {                           \
        return __atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST);                                       \
    }                                                                                             \
    UMS_WIN_INLINE type InterlockedDecrement##bits(type volatile* at) {                           \
        return __atomic_sub_fetch(at, 1, __ATOMIC_SEQ_CST);                                       \
    }                                                                                             \
    UMS_WIN_INLINE type InterlockedAdd##bits(type volatile* at, type value) {                     \
        return __atomic_add_fetch(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                             \
    UMS_WIN_INLINE type InterlockedExchange##bits(type volatile* at, type value) {                \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                  \
    }                                                                                             \
    UMS_WIN_INLINE type InterlockedExchangeAdd##bits(type volatile* at, type value) {             \
        return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                             \
    UMS_WIN_INLINE type InterlockedAnd##bits(type volatile* at, type value) {                     \
        return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                             \
    UMS_WIN_INLINE type InterlockedOr##bits(type volatile* at, type value) {                      \
        return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);                                    \
    }                                                                                             \
    UMS_WIN_INLINE type InterlockedXor##bits(type volatile* at, type value) {                     \
        return __atomic_fetch_xor(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                             \
    UMS_WIN_INLINE type InterlockedCompareExchange##bits(type volatile* at, type value,           \
                                                         type expected) {                         \
        __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        return expected;                                                                          \
    }

UMS_WIN_INTERLOCKED(SHORT, 16)
UMS_WIN_INTERLOCKED(LONG, )
UMS_WIN_INTERLOCKED(LONG64, 64)

UMS_WIN_INLINE PVOID InterlockedExchangePointer(PVOID volatile* at, PVOID value) {
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
UMS_WIN_INLINE PVOID InterlockedCompareExchangePointer(PVOID volatile* at, PVOID value,
                                                       PVOID expected) {
    __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
UMS_WIN_INLINE BOOLEAN InterlockedBitTestAndSet(LONG volatile* at, LONG bit) {
    const LONG mask = (LONG)(1u << (bit & 31));
    return (BOOLEAN)((__atomic_fetch_or(at, mask, __ATOMIC_SEQ_CST) & mask) != 0);
}
UMS_WIN_INLINE BOOLEAN InterlockedBitTestAndReset(LONG volatile* at, LONG bit) {
    const LONG mask = (LONG)(1u << (bit & 31));
    return (BOOLEAN)((__atomic_fetch_and(at, ~mask, __ATOMIC_SEQ_CST) & mask) != 0);
}

/* Lists that several threads push to and pop from. An entry must stay readable while the list is in
 * use. */
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

#ifdef __cplusplus /* A long has 64 bits here. Windows too has the plain names for unsigned. */
UMS_WIN_INTERLOCKED(long, )
UMS_WIN_INTERLOCKED(long, 64)
UMS_WIN_INTERLOCKED(unsigned, )
UMS_WIN_INTERLOCKED(ULONG64, )
UMS_WIN_INTERLOCKED(unsigned long, ) /* size_t */
#endif
#undef UMS_WIN_INTERLOCKED

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
#define _InterlockedAdd InterlockedAdd
#define _InterlockedAdd64 InterlockedAdd64
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
