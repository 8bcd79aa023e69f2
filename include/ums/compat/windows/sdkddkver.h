/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_SDKDDKVER_FORWARD
#define UMS_WINDOWS_SDKDDKVER_FORWARD
/* Another name of SDKDDKVer.h. */
#include "SDKDDKVer.h"
#endif
