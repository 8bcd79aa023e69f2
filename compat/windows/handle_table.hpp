// SPDX-License-Identifier: MIT
#pragma once

// windows/handle_table.hpp: from handles to objects.
//
// A handle is a multiple of four that fits into 31 bits: an index and how often the place was used, so
// that a handle that was closed is refused, for 511 uses of its place at least.

#include "ums/compat/windows/windows.h"
#include "windows/object.hpp"

namespace ums::windows {

// A handle that shares `o`, or null (NOT_ENOUGH_MEMORY).
HANDLE open_handle(object& o) noexcept;

// A reference to what a handle stands for; none (INVALID_HANDLE). Pseudo-handles included.
ref<object> find_object(HANDLE handle) noexcept;

// The same, of a kind only.
template <class T>
ref<T> find(HANDLE handle) noexcept {
    ref<object> found = find_object(handle);
    if (found && found->what == T::own_kind) return ref<T>{static_cast<T*>(found.release())};
    SetLastError(ERROR_INVALID_HANDLE);
    return {};
}

}  // namespace ums::windows
