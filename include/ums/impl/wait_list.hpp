// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/wait_list.hpp: the list of waiters that the blocking types embed.
//
// Only src/sync/ looks inside. A user of a blocking type never touches it.

#include <cstdint>

namespace ums::impl {

struct waiter;

// The waiters, first come first served, and the lock that guards them and the object that embeds
// them. All zero means empty and free, so objects of static storage need no initialisation. Never
// copied.
struct wait_list {
    std::uint32_t lock = 0;
    std::uint32_t spare = 0;  // For the embedding object's own use, under the lock or not.
    waiter* first = nullptr;  // A ring: first->previous is the last waiter.
};

}  // namespace ums::impl
