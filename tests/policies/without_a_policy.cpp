// SPDX-License-Identifier: MIT

// For `ums check-policy`: a function that makes no policy.

#include "ums/policy.hpp"

extern "C" ums::policy* ums_policy_make() { return nullptr; }
