// SPDX-License-Identifier: MIT
#include "ums/impl/misuse.hpp"

#include "base/assert.hpp"

namespace ums::impl {

[[gnu::cold]] void misuse(const char* message) noexcept {
    UMS_ASSERT(false, message);
    __builtin_unreachable();
}

}  // namespace ums::impl
