/* SPDX-License-Identifier: MIT */
/* ums/compat/linux_ums/ums_user_library.h: the published library's name for ums/compat/linux_ums.h.
 *
 * It includes what the published header includes. ums/compat/linux_ums.h states the contract. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../linux_ums.h"
