/* SPDX-License-Identifier: MIT */
#include "../linux_ums.h"
