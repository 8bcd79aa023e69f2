/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_LOADER_H
#define UMS_WINDOWS_IMPL_LOADER_H

/* impl/loader.h: the functions of these headers by name, as programs look for those of user-mode
 * scheduling in kernel32.dll. */

#include "base.h"

typedef INT_PTR(WINAPI* FARPROC)(void);

UMS_WIN_BEGIN

/* NULL (this program), kernel32, kernelbase and ntdll, with or without ".dll"; for others NULL and
 * ERROR_MOD_NOT_FOUND. All name the same module. */
UMS_WIN(HMODULE, GetModuleHandleA, (LPCSTR name));
UMS_WIN(HMODULE, GetModuleHandleW, (LPCWSTR name));
UMS_WIN(HMODULE, LoadLibraryA, (LPCSTR name));
UMS_WIN(HMODULE, LoadLibraryW, (LPCWSTR name));
UMS_WIN(BOOL, FreeLibrary, (HMODULE module));
/* A function of these headers; NULL and ERROR_PROC_NOT_FOUND if there is none of that name. In a
 * program that is linked statically, only those that it was linked with -rdynamic for. */
UMS_WIN(FARPROC, GetProcAddress, (HMODULE module, LPCSTR name));

UMS_WIN_END

#define GetModuleHandle UMS_WIN_TEXT(GetModuleHandle)
#define LoadLibrary UMS_WIN_TEXT(LoadLibrary)

#endif
