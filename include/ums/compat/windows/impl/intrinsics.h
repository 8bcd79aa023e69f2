/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_INTRINSICS_H
#define UMS_WINDOWS_IMPL_INTRINSICS_H

/* impl/intrinsics.h: the compiler's intrinsics: __rdtsc(), _mm_pause() and the rest of its own
 * header, and these. */

#if defined(__x86_64__)
#include <x86intrin.h>
#define __debugbreak() \
    __extension__({ __asm__ volatile("int3"); }) /* SIGTRAP, where a debugger goes on. */
#else
#define __debugbreak() __builtin_trap()
#endif

#include "interlocked.h"

#define DebugBreak() __debugbreak()
#define __noop(...) ((void)0)
#define __assume(condition)                        \
    do {                                           \
        if (!(condition)) __builtin_unreachable(); \
    } while (0)

/* The place of the lowest or highest set bit, to *index, of whatever integer type it is. 0: none is
 * set. */
#define UMS_WIN_BIT_SCAN(index, mask, type, place)         \
    __extension__({                                        \
        const type ums_win_mask = (type)(mask);            \
        *(index) = ums_win_mask != 0 ? (ULONG)(place) : 0; \
        (unsigned char)(ums_win_mask != 0);                \
    })
#define _BitScanForward(index, mask) \
    UMS_WIN_BIT_SCAN(index, mask, ULONG, __builtin_ctz(ums_win_mask))
#define _BitScanForward64(index, mask) \
    UMS_WIN_BIT_SCAN(index, mask, ULONG64, __builtin_ctzll(ums_win_mask))
#define _BitScanReverse(index, mask) \
    UMS_WIN_BIT_SCAN(index, mask, ULONG, 31 - __builtin_clz(ums_win_mask))
#define _BitScanReverse64(index, mask) \
    UMS_WIN_BIT_SCAN(index, mask, ULONG64, 63 - __builtin_clzll(ums_win_mask))
#define BitScanForward _BitScanForward
#define BitScanForward64 _BitScanForward64
#define BitScanReverse _BitScanReverse
#define BitScanReverse64 _BitScanReverse64
#define __popcnt(n) ((unsigned)__builtin_popcount(n))
#define __popcnt64(n) ((ULONG64)__builtin_popcountll(n))

#endif
