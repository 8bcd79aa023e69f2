// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <string>
#include <strings.h>

#include "windows/guard.hpp"
#include "windows/last_error.hpp"
#include "windows/utf8.hpp"

using namespace ums::windows;

namespace {

char the_module;  // Its address is the handle.

HMODULE find(const char* name) noexcept {
    static constexpr const char* ours[] = {"kernel32", "kernelbase", "ntdll"};
    if (name == nullptr) return &the_module;
    for (const char* const one : ours) {
        const std::size_t n = std::char_traits<char>::length(one);
        if (::strncasecmp(name, one, n) == 0 &&
            (name[n] == '\0' || ::strcasecmp(name + n, ".dll") == 0))
            return &the_module;
    }
    return SetLastError(ERROR_MOD_NOT_FOUND), nullptr;
}

HMODULE find(const wchar_t* name) noexcept {
    const uninterrupted section;
    return name == nullptr ? find(static_cast<const char*>(nullptr)) : find(to_utf8(name).c_str());
}

}  // namespace

HMODULE GetModuleHandleA(LPCSTR name) { return find(name); }
HMODULE GetModuleHandleW(LPCWSTR name) { return find(name); }
HMODULE LoadLibraryA(LPCSTR name) {
    return name == nullptr ? (SetLastError(ERROR_INVALID_PARAMETER), nullptr) : find(name);
}
HMODULE LoadLibraryW(LPCWSTR name) {
    return name == nullptr ? (SetLastError(ERROR_INVALID_PARAMETER), nullptr) : find(name);
}
BOOL FreeLibrary(HMODULE module) {
    return module == &the_module ? TRUE : (SetLastError(ERROR_INVALID_HANDLE), FALSE);
}

FARPROC GetProcAddress(HMODULE module, LPCSTR name) {
    if (module != &the_module || name == nullptr)
        return SetLastError(ERROR_INVALID_HANDLE), nullptr;
    const uninterrupted section;
    // The object that this function is in: the shared library, or the program.
    Dl_info here{};
    void* const object = ::dladdr(&the_module, &here) != 0 && here.dli_fname != nullptr
                             ? ::dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                             : nullptr;
    const std::string symbol = std::string{"ums_win_"} + name;
    void* const found = ::dlsym(object != nullptr ? object : RTLD_DEFAULT, symbol.c_str());
    if (object != nullptr) ::dlclose(object);
    if (found == nullptr) SetLastError(ERROR_PROC_NOT_FOUND);
    return reinterpret_cast<FARPROC>(found);
}
