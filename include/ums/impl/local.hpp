// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/local.hpp: how ums::fiber_local finds the caller's value.
//
// ums/fiber_local.hpp states the contract. src/sync/fiber_local.cpp implements these functions.

#include <cstdint>

#include "ums/export.hpp"

namespace ums::impl {

struct local_index;

// Names a fiber_local. No two ever have the same id; an index is used again.
struct local_key {
    std::uint64_t id;
    std::uint32_t index;
    local_index* home;
};

// The head of a value. All members but destroy belong to the table that holds it.
struct local_node {
    void (*destroy)(local_node& self) noexcept;
    local_node* older = nullptr;
    local_node* newer = nullptr;
    local_key key{};
};

// Throws std::bad_alloc.
[[nodiscard]] UMS_EXPORT local_key make_local_key();
// Frees the index for another key. Values of other fibers stay where they are.
UMS_EXPORT void free_local_key(const local_key& key) noexcept;

// Returns the caller's value, or null.
[[nodiscard]] UMS_EXPORT local_node* find_local(const local_key& key) noexcept;
// Gives the caller a value. Requires: the caller has none. Throws std::bad_alloc.
UMS_EXPORT void add_local(const local_key& key, local_node& made);
// Destroys the caller's value, if there is one.
UMS_EXPORT void destroy_local(const local_key& key) noexcept;

}  // namespace ums::impl
