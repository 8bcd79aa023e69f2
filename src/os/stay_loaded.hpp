// SPDX-License-Identifier: MIT
#pragma once

// os/stay_loaded.hpp: for what outlives the last runtime.

namespace ums::os {

// The object that holds the library's code is never unloaded from here on: dlclose() keeps it. For
// a caller that leaves behind a signal handler or a thread that runs this code. A library that was
// linked into a plug-in is the usual case. Takes the loader's lock; not from a signal handler.
//
// Rejected: to do so at each start. Handlers that lie on top are taken away at the end, so a
// plug-in can usually be unloaded, with its own static data.
void stay_loaded() noexcept;

}  // namespace ums::os
