/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_errhandlingapi_h_FORWARD
#define UMS_WINDOWS_errhandlingapi_h_FORWARD
/* Another name of windows.h. */
#include "windows.h"
#endif
