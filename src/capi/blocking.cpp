// SPDX-License-Identifier: MIT
#include "ums/blocking.hpp"

#include "capi/call.hpp"
#include "ums/keep_carrier.hpp"
#include "ums/ums.h"

void ums_blocking_enter() { ums::impl::blocking_enter(); }
void ums_blocking_leave() { ums::impl::blocking_leave(); }
void ums_uninterruptible_enter() { ums::impl::uninterruptible_enter(); }
void ums_uninterruptible_leave() { ums::impl::uninterruptible_leave(); }
int ums_keep_carrier_enter() { return ums::capi::call(ums::impl::keep_carrier_enter); }
void ums_keep_carrier_leave() { ums::impl::keep_carrier_leave(); }
