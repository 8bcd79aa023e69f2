// SPDX-License-Identifier: MIT
#include "os/foreign.hpp"

#include "os/io_calls.hpp"
#include "os/system.hpp"

namespace ums::os {

bool read_foreign(const void* at, void* into, std::size_t bytes) noexcept {
    const long n = system.read_own_memory(at, into, bytes);
    if (is_refused(n)) return system.read_through_pipe(at, into, bytes) == static_cast<long>(bytes);
    return n == static_cast<long>(bytes);
}

}  // namespace ums::os
