// SPDX-License-Identifier: MIT
#include "os/say.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <unistd.h>

#include "os/io_calls.hpp"

namespace ums::os {

void say(const char* format, ...) noexcept {
    char line[512] = "ums: ";
    constexpr std::size_t begin = 5;
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(line + begin, sizeof line - begin - 1, format, values);
    va_end(values);
    if (n < 0) return;
    const std::size_t end = std::min(begin + static_cast<std::size_t>(n), sizeof line - 2);
    line[end] = '\n';
    io_call(SYS_write, STDERR_FILENO, line, end + 1);
}

}  // namespace ums::os
