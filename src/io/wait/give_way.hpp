// SPDX-License-Identifier: MIT
#pragma once

// io/wait/give_way.hpp: an operation that will most likely find nothing lets others run first
// (io/wait/descriptor.hpp).

namespace ums::io {

// Runs those that are ready; if `looks`, also those that events make ready now. Returns whether
// there were any. For a plain thread there are none, nor for a fiber in ums::uninterruptible(), in
// ums::blocking(), that keeps its carrier, or that holds no processor and would first have to get
// one.
bool give_way(bool looks) noexcept;

}  // namespace ums::io
