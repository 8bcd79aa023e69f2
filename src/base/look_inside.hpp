// SPDX-License-Identifier: MIT
#pragma once

// base/look_inside.hpp: the friend of every class whose layout a reader from outside needs
// (runtime/root.hpp).

namespace ums {

struct look_inside;

}  // namespace ums
