// SPDX-License-Identifier: MIT
#include "ums/last_error.hpp"

#include <cerrno>

namespace ums {

// Never inlined, not even by a linker that optimises, because otherwise a caller would keep the
// address.
[[gnu::noinline]] int last_error() noexcept {
    asm volatile("");
    return errno;
}

[[gnu::noinline]] void set_last_error(int number) noexcept {
    asm volatile("");
    errno = number;
}

}  // namespace ums
