// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/other_than.hpp: keeps a template that takes any function from also taking what another
// overload is for. That is the handle that is copied, or the options.

#include <type_traits>

namespace ums::impl {

template <class T, class... Others>
concept other_than = (!std::is_same_v<std::remove_cvref_t<T>, Others> && ...);

}  // namespace ums::impl
