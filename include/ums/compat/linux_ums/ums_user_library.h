/* SPDX-License-Identifier: MIT */
/* The published library's name for ums/compat/linux_ums.h, and what it includes. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../linux_ums.h"
