// SPDX-License-Identifier: MIT
#include "os/stay_loaded.hpp"

#include <dlfcn.h>

// Weak, because a static program has no loader, and its linker warns of one.
#pragma weak dlopen
#pragma weak dladdr

namespace ums::os {

void stay_loaded() noexcept {
    if (&::dlopen == nullptr || &::dladdr == nullptr) return;
    Dl_info here;
    if (::dladdr(reinterpret_cast<const void*>(&stay_loaded), &here) == 0) return;
    // The handle is not closed. In the program itself there may be none, and need not be.
    static_cast<void>(::dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE));
}

}  // namespace ums::os
