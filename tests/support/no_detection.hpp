// SPDX-License-Identifier: MIT
#pragma once

// support/no_detection.hpp: for tests of the UMS API that count exactly what a scheduler is told: nobody looks for blocking
// that was not announced. A page fault that waits for another thread's is such blocking, and on a busy machine one is
// found now and then. UMS_BLOCK in the environment wins.

#include <cstdlib>

inline const bool no_detection = (::setenv("UMS_BLOCK", "off", 0), true);
