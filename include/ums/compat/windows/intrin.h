/* SPDX-License-Identifier: MIT */
#include "impl/intrinsics.h" /* The compiler's intrinsics. */
