// SPDX-License-Identifier: MIT
#pragma once

// What the shared library shows; everything else is hidden.
#define UMS_EXPORT __attribute__((visibility("default")))
