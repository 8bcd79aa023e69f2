// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ums/compat/windows/windows.h"

namespace {

void require(bool holds, const char* function) noexcept {
    if (holds) return;
    std::fprintf(stderr, "ums: %s(): an invalid parameter, or a target that is too small\n",
                 function);
    std::abort();
}

}  // namespace

int vsprintf_s(char* to, size_t size, const char* format, va_list arguments) {
    require(to != nullptr && size != 0 && format != nullptr, "sprintf_s");
    const int n = std::vsnprintf(to, size, format, arguments);
    require(n >= 0 && static_cast<size_t>(n) < size, "sprintf_s");
    return n;
}

int sprintf_s(char* to, size_t size, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = vsprintf_s(to, size, format, arguments);
    va_end(arguments);
    return n;
}

errno_t strncpy_s(char* to, size_t size, const char* from, size_t most) {
    require(to != nullptr && size != 0 && from != nullptr, "strncpy_s");
    const size_t n = std::min(::strnlen(from, std::min(most, size)), most);
    if (n >= size) require(most == _TRUNCATE, "strncpy_s");
    const size_t copied = std::min(n, size - 1);
    std::memmove(to, from, copied);
    to[copied] = '\0';
    return copied == n ? 0 : 80;  // STRUNCATE.
}

errno_t strcpy_s(char* to, size_t size, const char* from) {
    require(to != nullptr && from != nullptr && std::strlen(from) < size, "strcpy_s");
    std::memmove(to, from, std::strlen(from) + 1);
    return 0;
}

errno_t strcat_s(char* to, size_t size, const char* from) {
    require(to != nullptr && from != nullptr, "strcat_s");
    const size_t n = ::strnlen(to, size);
    require(n < size && std::strlen(from) < size - n, "strcat_s");
    std::memmove(to + n, from, std::strlen(from) + 1);
    return 0;
}

errno_t memcpy_s(void* to, size_t size, const void* from, size_t bytes) {
    if (bytes == 0) return 0;
    require(to != nullptr && from != nullptr && bytes <= size, "memcpy_s");
    std::memmove(to, from, bytes);
    return 0;
}
