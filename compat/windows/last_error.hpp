// SPDX-License-Identifier: MIT
#pragma once

// windows/last_error.hpp: why a call failed.

#include "ums/compat/windows/windows.h"

namespace ums::windows {

// For `return fail(ERROR_X);` in calls that return BOOL, a pointer or a count.
struct failure {
    operator BOOL() const noexcept { return FALSE; }
    template <class T>
    operator T*() const noexcept {
        return nullptr;
    }
};

inline failure fail(DWORD error) noexcept {
    SetLastError(error);
    return {};
}

}  // namespace ums::windows
