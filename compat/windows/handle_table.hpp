// SPDX-License-Identifier: MIT
#pragma once

// windows/handle_table.hpp: maps handles to objects.
//
// A handle is a multiple of four that fits into 31 bits. It holds an index and how often that place
// was used, so that a closed handle is refused for at least 511 uses of its place.

#include "ums/compat/windows/windows.h"
#include "windows/object.hpp"

namespace ums::windows {

// Returns a handle that shares `o`, or null (NOT_ENOUGH_MEMORY).
HANDLE open_handle(object& o) noexcept;

// Returns a reference to what a handle stands for, or none (INVALID_HANDLE). Accepts
// pseudo-handles.
ref<object> find_object(HANDLE handle) noexcept;

// The same, but only for objects of one kind.
template <class T>
ref<T> find(HANDLE handle) noexcept {
    ref<object> found = find_object(handle);
    if (found && found->what == T::own_kind) return ref<T>{static_cast<T*>(found.release())};
    SetLastError(ERROR_INVALID_HANDLE);
    return {};
}

}  // namespace ums::windows
