// SPDX-License-Identifier: MIT
#pragma once

// ums/export.hpp: marks the symbols that the shared library exports.
//
// UMS_EXPORT makes a symbol visible. The library hides every other symbol.

#define UMS_EXPORT __attribute__((visibility("default")))
