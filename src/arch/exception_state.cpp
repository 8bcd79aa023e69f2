// SPDX-License-Identifier: MIT
#include "arch/exception_state.hpp"

#include <cxxabi.h>

namespace ums::arch {

exception_state* exception_state_of_thread() noexcept {
    return reinterpret_cast<exception_state*>(__cxxabiv1::__cxa_get_globals());
}

}  // namespace ums::arch
