// SPDX-License-Identifier: MIT

// What tchar.h needs, most of it when text is wide. On Windows %s and %c in a wide format mean wide text, %S and %C the other; here
// the C library has it the other way round. The output is UTF-8 by way of narrow streams, so that a program may
// mix it with printf().

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cwchar>
#include <string>
#include <vector>

#include "ums/compat/windows/windows.h"
#include "windows/utf8.hpp"

using namespace ums::windows;

namespace {

std::wstring in_our_terms(const wchar_t* format) {
    std::wstring made;
    const std::wstring_view flags = L"-+ #0123456789.*";
    for (std::wstring_view rest = format; !rest.empty();) {
        made += rest.front();
        const bool is_percent = rest.front() == L'%';
        rest.remove_prefix(1);
        if (!is_percent) continue;
        while (!rest.empty() && flags.find(rest.front()) != flags.npos) {
            made += rest.front();
            rest.remove_prefix(1);
        }
        const auto replace = [&](std::wstring_view what, const wchar_t* by) {
            if (!rest.starts_with(what)) return false;
            made += by;
            rest.remove_prefix(what.size());
            return true;
        };
        (void)(replace(L"%", L"%") || replace(L"s", L"ls") || replace(L"c", L"lc") ||
               replace(L"S", L"s") || replace(L"C", L"c") || replace(L"I64", L"ll") ||
               replace(L"I32", L"") || replace(L"hs", L"s") || replace(L"I", L"z"));
    }
    return made;
}

// Negative: an error.
int format_text(std::wstring& into, const wchar_t* format, va_list arguments) {
    const std::wstring ours = in_our_terms(format);
    std::vector<wchar_t> buffer(256);
    constexpr std::size_t most = 1 << 24;
    for (;;) {
        va_list again;
        va_copy(again, arguments);
        const int n = std::vswprintf(buffer.data(), buffer.size(), ours.c_str(), again);
        va_end(again);
        if (n >= 0) {
            into.assign(buffer.data(), static_cast<std::size_t>(n));
            return n;
        }
        // It does not say how much it needs, nor whether it failed for another reason.
        if (buffer.size() >= most) return -1;
        buffer.resize(buffer.size() * 4);
    }
}

// As on Windows: cut, without a zero if there is no room for it, and -1 if it was cut.
template <class Char>
int copy_cut(Char* into, std::size_t size, const Char* text, std::size_t length) {
    const std::size_t copied = length < size ? length : size;
    std::copy_n(text, copied, into);
    if (copied < size) into[copied] = Char{};
    return length <= size ? static_cast<int>(length) : -1;
}

int print(std::FILE* file, const wchar_t* format, va_list arguments) {
    std::wstring text;
    const int n = format_text(text, format, arguments);
    if (n < 0) return n;
    const std::string bytes = to_utf8(text);
    return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() ? n : -1;
}

}  // namespace

int tchar_wprintf(const wchar_t* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = print(stdout, format, arguments);
    va_end(arguments);
    return n;
}

int tchar_fwprintf(void* file, const wchar_t* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = print(static_cast<std::FILE*>(file), format, arguments);
    va_end(arguments);
    return n;
}

int tchar_snprintf(char* into, size_t size, const char* format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    // Where it fits with its zero, without a copy.
    const int n = std::vsnprintf(into, size, format, arguments);
    va_end(arguments);
    if (n < 0 || static_cast<std::size_t>(n) < size) return va_end(again), n;
    std::vector<char> text(static_cast<std::size_t>(n) + 1);
    std::vsnprintf(text.data(), text.size(), format, again);
    va_end(again);
    return copy_cut(into, size, text.data(), static_cast<std::size_t>(n));
}

int tchar_snwprintf(wchar_t* into, size_t size, const wchar_t* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::wstring text;
    const int n = format_text(text, format, arguments);
    va_end(arguments);
    return n < 0 ? n : copy_cut(into, size, text.data(), static_cast<std::size_t>(n));
}

// A program in C has another type for wchar_t: clang's check of called functions takes it for a mistake.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
int tchar_wmain(int (*wmain)(int, wchar_t**), int argc, char** argv) {
    std::vector<std::wstring> words;
    for (int i = 0; i < argc; ++i) words.push_back(to_wide(argv[i]));
    std::vector<wchar_t*> pointers;
    for (std::wstring& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return wmain(argc, pointers.data());
}
