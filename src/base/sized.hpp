// SPDX-License-Identifier: MIT
#pragma once

// base/sized.hpp: structs of a C interface that begin with their size, so that they can grow. A
// caller may have been compiled with an older struct, or with a newer one of which it sets only
// what is known here.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace ums::base {

inline constexpr std::size_t largest_size = 4096;

// Copies what the caller gave over `known`, which holds the defaults. Returns 0; -EINVAL if that
// cannot be its size; -E2BIG if it sets what is not known here.
template <class T>
int copy_sized(T& known, const T& given, std::size_t smallest) noexcept {
    const std::size_t size = given.size;
    if (size < smallest || size > largest_size) return -EINVAL;
    const char* bytes = reinterpret_cast<const char*>(&given);
    for (std::size_t i = sizeof(T); i < size; ++i)
        if (bytes[i] != 0) return -E2BIG;
    std::memcpy(&known, bytes, std::min(size, sizeof(T)));
    known.size = sizeof(T);
    return 0;
}

// Fills the caller's struct, as far as it has room; what it has beyond that becomes zero. Returns 0
// or -EINVAL, as above.
template <class T>
int give_sized(T& to, T known, std::size_t smallest) noexcept {
    const std::size_t size = to.size;
    if (size < smallest || size > largest_size) return -EINVAL;
    known.size = size;
    std::memset(static_cast<void*>(&to), 0, size);
    std::memcpy(static_cast<void*>(&to), &known, std::min(size, sizeof(T)));
    return 0;
}

}  // namespace ums::base
