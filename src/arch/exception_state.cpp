// SPDX-License-Identifier: MIT
#include "arch/exception_state.hpp"

#include <cxxabi.h>

#if !defined(__GLIBCXX__)
// libc++'s header leaves it out.
namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept;
}  // namespace __cxxabiv1
#endif

namespace ums::arch {

exception_state* exception_state_of_thread() noexcept {
    return reinterpret_cast<exception_state*>(__cxxabiv1::__cxa_get_globals());
}

}  // namespace ums::arch
