/* SPDX-License-Identifier: MIT */
/* ums/compat/linux_ums/Headers/ums_user_library.h: the place of the published library's header.
 *
 * Programs beside that library include it from its folder. ums/compat/linux_ums.h states the
 * contract. */
#include "../ums_user_library.h"
