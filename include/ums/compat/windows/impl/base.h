/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_BASE_H
#define UMS_WINDOWS_IMPL_BASE_H

/* impl/base.h: types, calling conventions, annotations, small macros. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "annotations.h"

/* UMS_WIN(DWORD, GetLastError, (void)) declares the library's ums_win_GetLastError() under its
 * Windows name. */
#define UMS_WIN(result, name, parameters) \
    result name parameters __asm__("ums_win_" #name) __attribute__((visibility("default")))

#ifdef __cplusplus
#define UMS_WIN_BEGIN extern "C" {
#define UMS_WIN_END }
#else
#define UMS_WIN_BEGIN
#define UMS_WIN_END
#endif

/* --- The compiler ----------------------------------------------------------------------------- */

#define WINAPI
#define APIENTRY
#define CALLBACK
#define NTAPI
#define WINAPIV
#define WINBASEAPI
#define STDAPICALLTYPE
#define NTSYSAPI
#define __cdecl
#define __stdcall
#define __fastcall
#define __vectorcall
#define _cdecl
#define _stdcall
#ifndef __forceinline
#define __forceinline inline __attribute__((always_inline))
#endif
#define FORCEINLINE __forceinline
#define UMS_WIN_INLINE static __forceinline /* For functions of these headers. */
#define DECLSPEC_NORETURN __attribute__((noreturn))
#define DECLSPEC_ALIGN(n) __attribute__((aligned(n)))
#define DECLSPEC_NOINLINE __attribute__((noinline))
#define DECLSPEC_IMPORT
#define UNREFERENCED_PARAMETER(p) ((void)(p))
#define UNREFERENCED_LOCAL_VARIABLE(v) ((void)(v))

#ifndef __declspec
#define __declspec(what) UMS_DECLSPEC_##what
#endif
#ifdef __cplusplus
#define UMS_DECLSPEC_thread thread_local
#else
#define UMS_DECLSPEC_thread _Thread_local
#endif
#define UMS_DECLSPEC_align(n) __attribute__((aligned(n)))
#define UMS_DECLSPEC_noinline __attribute__((noinline))
#define UMS_DECLSPEC_noreturn __attribute__((noreturn))
#define UMS_DECLSPEC_nothrow __attribute__((nothrow))
#define UMS_DECLSPEC_selectany __attribute__((weak))
#define UMS_DECLSPEC_deprecated __attribute__((deprecated))
#define UMS_DECLSPEC_dllexport __attribute__((visibility("default")))
#define UMS_DECLSPEC_dllimport
#define UMS_DECLSPEC_novtable
#define UMS_DECLSPEC_restrict
#define UMS_DECLSPEC_allocator

#define __int8 char
#define __int16 short
#define __int32 int
#define __int64 long long

/* What programs ask for the machine. */
#if defined(__x86_64__)
#define _AMD64_
#define _M_X64 100
#define _M_AMD64 100
#elif defined(__aarch64__)
#define _ARM64_
#define _M_ARM64 1
#endif

/* --- Types ------------------------------------------------------------------------------------ */

#define VOID void
#define CONST const
#ifndef FALSE
#define FALSE 0
#endif
#ifndef TRUE
#define TRUE 1
#endif

typedef void *PVOID, *LPVOID;
typedef const void *LPCVOID, *PCVOID;
typedef int BOOL, *PBOOL, *LPBOOL;
typedef unsigned char BOOLEAN, *PBOOLEAN;
typedef char CHAR, *PCHAR;
typedef signed char INT8;
typedef unsigned char BYTE, UCHAR, UINT8, *PBYTE, *LPBYTE, *PUCHAR;
typedef short SHORT, INT16, *PSHORT;
typedef unsigned short WORD, USHORT, UINT16, *PWORD, *LPWORD, *PUSHORT;
typedef int INT, INT32, LONG, LONG32, *PINT, *LPINT, *PLONG, *LPLONG;
typedef unsigned UINT, UINT32, ULONG, ULONG32, DWORD, DWORD32, *PUINT, *PULONG, *PDWORD, *LPDWORD;
typedef long long LONGLONG, LONG64, INT64, *PLONGLONG, *PLONG64, *PINT64;
typedef unsigned long long ULONGLONG, ULONG64, DWORDLONG, DWORD64, UINT64, *PULONGLONG, *PULONG64,
    *PDWORD64, *PUINT64;
typedef float FLOAT;
typedef double DOUBLE;
typedef intptr_t INT_PTR, LONG_PTR, SSIZE_T, *PINT_PTR, *PLONG_PTR;
typedef uintptr_t UINT_PTR, ULONG_PTR, DWORD_PTR, KAFFINITY, *PUINT_PTR, *PULONG_PTR, *PDWORD_PTR;
typedef size_t SIZE_T, *PSIZE_T;
typedef wchar_t WCHAR, *PWCHAR, *LPWSTR, *PWSTR;
typedef const wchar_t *LPCWSTR, *PCWSTR, *LPCWCH;
typedef char *LPSTR, *PSTR;
typedef const char *LPCSTR, *PCSTR;
typedef LONG HRESULT, NTSTATUS;

typedef void *HANDLE, *HMODULE, *HINSTANCE, *HWND, *HLOCAL, *HGLOBAL, **PHANDLE, **LPHANDLE;
#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)-1)
#define DECLARE_HANDLE(name) \
    struct name##__ {        \
        int unused;          \
    };                       \
    typedef struct name##__* name

#ifdef UNICODE
typedef WCHAR TCHAR, *PTCHAR;
typedef LPWSTR LPTSTR, PTSTR;
typedef LPCWSTR LPCTSTR, PCTSTR;
#define __TEXT(text) L##text
#define UMS_WIN_TEXT(name) name##W /* A function with two forms of text. */
#else
typedef char TCHAR, *PTCHAR;
typedef LPSTR LPTSTR, PTSTR;
typedef LPCSTR LPCTSTR, PCTSTR;
#define __TEXT(text) text
#define UMS_WIN_TEXT(name) name##A
#endif
#define TEXT(text) __TEXT(text)

typedef union _LARGE_INTEGER {
    __extension__ struct {
        DWORD LowPart;
        LONG HighPart;
    };
    struct {
        DWORD LowPart;
        LONG HighPart;
    } u;
    LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER;

typedef union _ULARGE_INTEGER {
    __extension__ struct {
        DWORD LowPart;
        DWORD HighPart;
    };
    struct {
        DWORD LowPart;
        DWORD HighPart;
    } u;
    ULONGLONG QuadPart;
} ULARGE_INTEGER, *PULARGE_INTEGER;

typedef struct _FILETIME {
    DWORD dwLowDateTime;
    DWORD dwHighDateTime;
} FILETIME, *PFILETIME, *LPFILETIME;

typedef struct _SECURITY_ATTRIBUTES {
    DWORD nLength;
    LPVOID lpSecurityDescriptor;
    BOOL bInheritHandle;
} SECURITY_ATTRIBUTES, *PSECURITY_ATTRIBUTES, *LPSECURITY_ATTRIBUTES;

typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY* Flink;
    struct _LIST_ENTRY* Blink;
} LIST_ENTRY, *PLIST_ENTRY;

/* --- Small things ----------------------------------------------------------------------------- */

#define MAX_PATH 260
#define INFINITE 0xFFFFFFFFu
#define MAXDWORD 0xFFFFFFFFu
#define MAXLONG 0x7FFFFFFF
#define ANYSIZE_ARRAY 1

#define MAKEWORD(low, high) ((WORD)(((BYTE)(low)) | ((WORD)((BYTE)(high))) << 8))
#define MAKELONG(low, high) ((LONG)(((WORD)(low)) | ((DWORD)((WORD)(high))) << 16))
#define LOWORD(n) ((WORD)((DWORD_PTR)(n)&0xffff))
#define HIWORD(n) ((WORD)(((DWORD_PTR)(n) >> 16) & 0xffff))
#define LOBYTE(n) ((BYTE)((DWORD_PTR)(n)&0xff))
#define HIBYTE(n) ((BYTE)(((DWORD_PTR)(n) >> 8) & 0xff))

#define ULongToHandle(n) ((HANDLE)(ULONG_PTR)(n))
#define UlongToHandle(n) ULongToHandle(n)
#define HandleToULong(h) ((ULONG)(ULONG_PTR)(h))

#define FIELD_OFFSET(type, field) ((LONG)offsetof(type, field))
#define CONTAINING_RECORD(address, type, field) ((type*)((char*)(address)-offsetof(type, field)))
#ifndef ARRAYSIZE
#define ARRAYSIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif
#ifndef _countof
#define _countof(array) (sizeof(array) / sizeof((array)[0]))
#endif
#define C_ASSERT(what) extern char ums_win_assertion[(what) ? 1 : -1]
#define RTL_NUMBER_OF(array) ARRAYSIZE(array)

#define MoveMemory(to, from, bytes) __builtin_memmove((to), (from), (bytes))
#define CopyMemory(to, from, bytes) __builtin_memcpy((to), (from), (bytes))
#define FillMemory(to, bytes, fill) __builtin_memset((to), (fill), (bytes))
#define ZeroMemory(to, bytes) __builtin_memset((to), 0, (bytes))
#define RtlMoveMemory(to, from, bytes) MoveMemory(to, from, bytes)
#define RtlCopyMemory(to, from, bytes) CopyMemory(to, from, bytes)
#define RtlFillMemory(to, bytes, fill) FillMemory(to, bytes, fill)
#define RtlZeroMemory(to, bytes) ZeroMemory(to, bytes)

/* Done, although nothing reads it. */
UMS_WIN_INLINE PVOID SecureZeroMemory(PVOID to, SIZE_T bytes) {
    __builtin_memset(to, 0, bytes);
    __asm__ __volatile__("" : : "r"(to) : "memory");
    return to;
}
#define RtlSecureZeroMemory(to, bytes) SecureZeroMemory(to, bytes)

/* Not in C++, where they would break the standard library's headers that come after. */
#if !defined(NOMINMAX) && !defined(__cplusplus)
#ifndef max
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#ifndef min
#define min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#endif

#endif
