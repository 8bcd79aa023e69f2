// SPDX-License-Identifier: MIT

// FormatMessage() and OutputDebugString().

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "windows/guard.hpp"
#include "windows/last_error.hpp"
#include "windows/utf8.hpp"

using namespace ums::windows;

namespace {

struct text_of {
    DWORD error;
    const char* text;
};

// In our own words, not in those of Windows.
constexpr text_of texts[] = {
    {ERROR_SUCCESS, "No error."},
    {ERROR_FILE_NOT_FOUND, "There is nothing of that name."},
    {ERROR_ACCESS_DENIED, "Access is denied."},
    {ERROR_INVALID_HANDLE, "The handle is invalid."},
    {ERROR_NOT_ENOUGH_MEMORY, "There is not enough memory."},
    {ERROR_BAD_LENGTH, "The length is wrong."},
    {ERROR_GEN_FAILURE, "What was asked for is not possible now."},
    {ERROR_NOT_SUPPORTED, "The request is not supported."},
    {ERROR_INVALID_PARAMETER, "A parameter is wrong."},
    {ERROR_INSUFFICIENT_BUFFER, "The buffer is too small."},
    {ERROR_ALREADY_EXISTS, "It exists already."},
    {ERROR_MOD_NOT_FOUND, "There is no module of that name."},
    {ERROR_PROC_NOT_FOUND, "The module has no function of that name."},
    {WAIT_TIMEOUT, "The wait timed out."},
    {ERROR_NOT_OWNER, "It belongs to another thread."},
    {ERROR_TOO_MANY_POSTS, "The semaphore would exceed its maximum."},
    {ERROR_RETRY, "Try again."},
    {ERROR_ALREADY_FIBER, "The thread is a fiber already."},
    {ERROR_ALREADY_THREAD, "The thread is not a fiber."},
    {ERROR_NO_SYSTEM_RESOURCES, "The system has no more of what is needed."},
    {ERROR_TIMEOUT, "The time is over."},
};

// Returns the whole text; if it is empty there is none, and the last error says why.
std::string find_text(DWORD flags, DWORD message, const void* buffer) {
    if (buffer == nullptr || (flags & FORMAT_MESSAGE_FROM_SYSTEM) == 0)
        return SetLastError(ERROR_INVALID_PARAMETER), "";
    for (const text_of& one : texts)
        if (one.error == message)  // FORMAT_MESSAGE_MAX_WIDTH_MASK asks for text without line ends.
            return one.text +
                   std::string{(flags & FORMAT_MESSAGE_MAX_WIDTH_MASK) != 0 ? "" : "\r\n"};
    return SetLastError(ERROR_MR_MID_NOT_FOUND), "";
}

// Writes into the caller's buffer, or into a new one. Returns the number of characters.
template <class Char>
DWORD give(DWORD flags, const std::basic_string<Char>& text, Char* buffer, DWORD size) noexcept {
    if (text.empty()) return 0;
    const std::size_t bytes = (text.size() + 1) * sizeof(Char);
    if ((flags & FORMAT_MESSAGE_ALLOCATE_BUFFER) != 0) {
        const std::size_t least = size * sizeof(Char);
        void* const made = LocalAlloc(LMEM_FIXED, bytes < least ? least : bytes);
        if (made == nullptr) return 0;
        std::memcpy(made, text.c_str(), bytes);
        std::memcpy(buffer, &made, sizeof made);  // The parameter is the address of a pointer.
    } else {
        if (size < text.size() + 1) return SetLastError(ERROR_INSUFFICIENT_BUFFER), 0;
        std::memcpy(buffer, text.c_str(), bytes);
    }
    return static_cast<DWORD>(text.size());
}

bool is_debug_output_wanted() noexcept {
    static const bool wanted = [] {
        const char* const value = ::secure_getenv("UMS_DEBUG_OUTPUT");
        return (value != nullptr && std::strcmp(value, "1") == 0) || IsDebuggerPresent() != FALSE;
    }();
    return wanted;
}

}  // namespace

DWORD FormatMessageA(DWORD flags, LPCVOID, DWORD message, DWORD, LPSTR buffer, DWORD size,
                     va_list*) {
    const uninterrupted section;
    return give(flags, find_text(flags, message, buffer), buffer, size);
}

DWORD FormatMessageW(DWORD flags, LPCVOID, DWORD message, DWORD, LPWSTR buffer, DWORD size,
                     va_list*) {
    const uninterrupted section;
    const std::string text = find_text(flags, message, buffer);
    return give(flags, std::wstring{text.begin(), text.end()}, buffer, size);
}

VOID OutputDebugStringA(LPCSTR text) {
    if (text == nullptr || !is_debug_output_wanted()) return;
    const uninterrupted section;
    std::fputs(text, stderr);
}

VOID OutputDebugStringW(LPCWSTR text) {
    if (text != nullptr) OutputDebugStringA(to_utf8(text).c_str());
}
