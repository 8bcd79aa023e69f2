// SPDX-License-Identifier: MIT
#include "arch/sanitizer.hpp"

namespace ums::arch {

#if defined(UMS_TSAN)
bool race_context_syncs = true;
#endif

}  // namespace ums::arch
