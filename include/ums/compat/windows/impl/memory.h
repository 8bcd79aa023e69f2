/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_MEMORY_H
#define UMS_WINDOWS_IMPL_MEMORY_H

/* impl/memory.h: heaps, local memory, pages. */

#include "base.h"

#define HEAP_NO_SERIALIZE 0x00000001u
#define HEAP_GENERATE_EXCEPTIONS 0x00000004u
#define HEAP_ZERO_MEMORY 0x00000008u
#define HEAP_REALLOC_IN_PLACE_ONLY 0x00000010u

#define LMEM_FIXED 0x0000u
#define LMEM_ZEROINIT 0x0040u
#define LPTR (LMEM_FIXED | LMEM_ZEROINIT)
#define GMEM_FIXED 0x0000u
#define GMEM_ZEROINIT 0x0040u
#define GPTR (GMEM_FIXED | GMEM_ZEROINIT)

#define MEM_COMMIT 0x00001000u
#define MEM_RESERVE 0x00002000u
#define MEM_DECOMMIT 0x00004000u
#define MEM_RELEASE 0x00008000u
#define PAGE_NOACCESS 0x01u
#define PAGE_READONLY 0x02u
#define PAGE_READWRITE 0x04u
#define PAGE_EXECUTE 0x10u
#define PAGE_EXECUTE_READ 0x20u
#define PAGE_EXECUTE_READWRITE 0x40u

UMS_WIN_BEGIN

UMS_WIN(HANDLE, GetProcessHeap, (void));
/* Grows as needed: the sizes are not limits. */
UMS_WIN(HANDLE, HeapCreate, (DWORD flags, SIZE_T initial, SIZE_T maximum));
UMS_WIN(BOOL, HeapDestroy, (HANDLE heap));
UMS_WIN(LPVOID, HeapAlloc, (HANDLE heap, DWORD flags, SIZE_T bytes));
UMS_WIN(LPVOID, HeapReAlloc, (HANDLE heap, DWORD flags, LPVOID block, SIZE_T bytes));
UMS_WIN(BOOL, HeapFree, (HANDLE heap, DWORD flags, LPVOID block));
UMS_WIN(SIZE_T, HeapSize, (HANDLE heap, DWORD flags, LPCVOID block)); /* (SIZE_T)-1: an error. */

UMS_WIN(HLOCAL, LocalAlloc, (UINT flags, SIZE_T bytes));
UMS_WIN(HLOCAL, LocalFree, (HLOCAL block)); /* NULL: done. */
UMS_WIN(HGLOBAL, GlobalAlloc, (UINT flags, SIZE_T bytes));
UMS_WIN(HGLOBAL, GlobalFree, (HGLOBAL block));

UMS_WIN(LPVOID, VirtualAlloc, (LPVOID address, SIZE_T bytes, DWORD type, DWORD protection));
UMS_WIN(BOOL, VirtualFree, (LPVOID address, SIZE_T bytes, DWORD type));
UMS_WIN(BOOL, VirtualProtect, (LPVOID address, SIZE_T bytes, DWORD protection, PDWORD old));

UMS_WIN_END

#endif
