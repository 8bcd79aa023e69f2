// SPDX-License-Identifier: MIT
#include "base/assert.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace ums::base {

describe_caller_fn describe_caller = nullptr;

namespace {

void put(const char* text, int length, unsigned long capacity) noexcept {
    if (length < 0) return;
    unsigned long n = static_cast<unsigned long>(length);
    if (n >= capacity) n = capacity - 1;
    // write(2), not stdio: the failing code may hold stdio's lock.
    [[maybe_unused]] auto written = ::write(STDERR_FILENO, text, n);
}

}  // namespace

void assertion_failed(const char* message, const char* file, int line) noexcept {
    char who[160] = "";
    if (describe_caller != nullptr) describe_caller(who, sizeof who);
    char text[640];
    put(text,
        std::snprintf(text, sizeof text, "ums: %s (%s:%d)%s%s\n", message, file, line,
                      who[0] != 0 ? ", in " : "", who),
        sizeof text);
    std::abort();
}

void fatal(const char* format, ...) noexcept {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char out[640];
    put(out, std::snprintf(out, sizeof out, "ums: %s\n", text), sizeof out);
    std::abort();
}

}  // namespace ums::base
