// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/child_count.hpp: the words that count the children of a scope.
//
// Only src/sync/child_count.hpp looks inside, which says what they mean. All zero: no child.

#include <cstdint>

namespace ums::impl {

struct child_count {
    std::uint64_t word = 0;
    std::uint64_t begun = 0;
    std::uint64_t told = 0;
};

}  // namespace ums::impl
