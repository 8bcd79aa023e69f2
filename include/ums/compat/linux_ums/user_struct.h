/* SPDX-License-Identifier: MIT */
/* ums/compat/linux_ums/user_struct.h: another name of the published library.
 *
 * It includes ums/compat/linux_ums.h. That header states the contract. */
#include "../linux_ums.h"
