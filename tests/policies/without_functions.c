// SPDX-License-Identifier: MIT

// For `ums check-policy`: a policy of C that lacks its functions.

#include <ums/ums.h>

const ums_policy_calls_t ums_policy_functions = UMS_POLICY_CALLS_INIT;
