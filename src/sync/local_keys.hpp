// SPDX-License-Identifier: MIT
#pragma once

// sync/local_keys.hpp: what fork() needs of the keys of fiber_local.

namespace ums::sync {

// In the child of a fork(): no other thread makes or frees a key.
void leave_local_keys_behind() noexcept;

}  // namespace ums::sync
