/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_MEMORY_H
#define UMS_WINDOWS_IMPL_MEMORY_H

/* impl/memory.h: heaps, local memory, and what Windows' malloc.h has. */

#include <stdlib.h>

#include "base.h"

#define MEMORY_ALLOCATION_ALIGNMENT 16
#define _aligned_malloc(bytes, alignment) aligned_alloc((alignment), (bytes))
#define _aligned_free free
#define _alloca __builtin_alloca
#define _malloca __builtin_alloca
#define _freea(block) ((void)(block))

#define HEAP_NO_SERIALIZE 0x00000001u
#define HEAP_GENERATE_EXCEPTIONS 0x00000004u
#define HEAP_ZERO_MEMORY 0x00000008u

#define LMEM_FIXED 0x0000u
#define LMEM_ZEROINIT 0x0040u
#define LPTR (LMEM_FIXED | LMEM_ZEROINIT)

UMS_WIN_BEGIN

UMS_WIN(HANDLE, GetProcessHeap, (void));
/* Grows as needed: the sizes are not limits. */
UMS_WIN(HANDLE, HeapCreate, (DWORD flags, SIZE_T initial, SIZE_T maximum));
UMS_WIN(BOOL, HeapDestroy, (HANDLE heap));
UMS_WIN(LPVOID, HeapAlloc, (HANDLE heap, DWORD flags, SIZE_T bytes));
UMS_WIN(BOOL, HeapFree, (HANDLE heap, DWORD flags, LPVOID block));

UMS_WIN(HLOCAL, LocalAlloc, (UINT flags, SIZE_T bytes));
UMS_WIN(HLOCAL, LocalFree, (HLOCAL block)); /* NULL: done. */

UMS_WIN_END

#endif
