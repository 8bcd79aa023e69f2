// SPDX-License-Identifier: MIT
#pragma once

// ums/export.hpp: what the shared library shows.
//
// UMS_EXPORT makes a symbol visible. The library hides every other symbol.

#define UMS_EXPORT __attribute__((visibility("default")))
