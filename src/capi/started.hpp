// SPDX-License-Identifier: MIT
#pragma once

// capi/started.hpp: the runtime that ums_runtime_start() made.

namespace ums::capi {

// Takes the runtime away from ums_runtime_stop() for good and waits until its own cluster has no
// fiber left. Returns false if there is none. Called by a plain thread, once in a process.
bool drain_started() noexcept;

}  // namespace ums::capi
