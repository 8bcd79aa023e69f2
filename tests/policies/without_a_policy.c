// SPDX-License-Identifier: MIT

// For `ums check-policy`: a function that makes no policy.

#include <stddef.h>

void* ums_policy_make(void) { return NULL; }
