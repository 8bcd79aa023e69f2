// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/local.hpp: how ums::fiber_local finds the caller's value. See src/sync/fiber_local.cpp.

#include <cstdint>

#include "ums/export.hpp"

namespace ums::impl {

struct local_index;

// Of a fiber_local. No two ever have the same id; an index is used again.
struct local_key {
    std::uint64_t id;
    std::uint32_t index;
    local_index* home;
};

// The head of a value. All but destroy belongs to the table it is in.
struct local_node {
    void (*destroy)(local_node& self) noexcept;
    local_node* older = nullptr;
    local_node* newer = nullptr;
    local_key key{};
};

// Throws std::bad_alloc.
[[nodiscard]] UMS_EXPORT local_key make_local_key();
// The index may be used again. Values of other fibers stay where they are.
UMS_EXPORT void free_local_key(const local_key& key) noexcept;

// The caller's value, or null.
[[nodiscard]] UMS_EXPORT local_node* find_local(const local_key& key) noexcept;
// Requires: it has none. Throws std::bad_alloc.
UMS_EXPORT void add_local(const local_key& key, local_node& made);
// Destroys it, if it has one.
UMS_EXPORT void destroy_local(const local_key& key) noexcept;

}  // namespace ums::impl
