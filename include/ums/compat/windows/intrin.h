/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_INTRIN_H
#define UMS_WINDOWS_INTRIN_H

/* intrin.h: the compiler's intrinsics. */

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

#include "impl/interlocked.h"

#define __debugbreak() __builtin_trap()

#endif
