// SPDX-License-Identifier: MIT
#include <cerrno>
#include <string_view>
#include <unistd.h>

#include "windows/guard.hpp"
#include "windows/last_error.hpp"
#include "windows/utf8.hpp"

using namespace ums::windows;

namespace {

// Above all handles of objects, and none of the pseudo-handles of threads and processes.
constexpr ULONG_PTR first = ~ULONG_PTR{0} - 0xff;

// Returns the descriptor, or -1.
int descriptor_of(HANDLE h) noexcept {
    const ULONG_PTR n = reinterpret_cast<ULONG_PTR>(h) - first;
    return n <= 2 ? static_cast<int>(n) : -1;
}

BOOL write_all(HANDLE to, std::string_view text) noexcept {
    const int fd = descriptor_of(to);
    if (fd < 0) return SetLastError(ERROR_INVALID_HANDLE), FALSE;
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return SetLastError(ERROR_GEN_FAILURE), FALSE;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return TRUE;
}

}  // namespace

HANDLE GetStdHandle(DWORD which) {
    const DWORD n = STD_INPUT_HANDLE - which;
    if (n > 2) return SetLastError(ERROR_INVALID_PARAMETER), INVALID_HANDLE_VALUE;
    return reinterpret_cast<HANDLE>(first + n);
}

BOOL WriteConsoleA(HANDLE to, const VOID* text, DWORD characters, LPDWORD written, LPVOID) {
    if (text == nullptr) return SetLastError(ERROR_INVALID_PARAMETER), FALSE;
    if (!write_all(to, {static_cast<const char*>(text), characters})) return FALSE;
    if (written != nullptr) *written = characters;
    return TRUE;
}

BOOL WriteConsoleW(HANDLE to, const VOID* text, DWORD characters, LPDWORD written, LPVOID) {
    if (text == nullptr) return SetLastError(ERROR_INVALID_PARAMETER), FALSE;
    const std::string narrow = [&] {
        const uninterrupted section;
        return to_utf8({static_cast<const wchar_t*>(text), characters});
    }();
    if (!write_all(to, narrow)) return FALSE;
    if (written != nullptr) *written = characters;
    return TRUE;
}
