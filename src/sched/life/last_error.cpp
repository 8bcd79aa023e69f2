// SPDX-License-Identifier: MIT
#include "ums/last_error.hpp"

#include <cerrno>

namespace ums {

// Never inlined, not even by a linker that optimises, because otherwise a caller would keep the
// address. ThreadSanitizer leaves these out: errno is the kernel thread's, and its fibers take
// turns.
#define UMS_OF_THE_THREAD __attribute__((noinline, no_sanitize("thread")))

UMS_OF_THE_THREAD int last_error() noexcept {
    asm volatile("");
    return errno;
}

UMS_OF_THE_THREAD void set_last_error(int number) noexcept {
    asm volatile("");
    errno = number;
}

}  // namespace ums
