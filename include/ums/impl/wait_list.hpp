// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/wait_list.hpp: what the blocking types embed. Only src/sync/ looks inside.

#include <cstdint>

namespace ums::impl {

struct waiter;

// Who waits, first come first served, and the lock that guards it and the object it lies in. All zero is
// empty and free, so that objects of static storage need no initialisation. Never copied.
struct wait_list {
    std::uint32_t lock = 0;
    std::uint32_t spare = 0;  // For the object's own use, under the lock or not.
    waiter* first = nullptr;  // A ring: first->previous is the last.
};

}  // namespace ums::impl
