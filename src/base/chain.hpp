// SPDX-License-Identifier: MIT
#pragma once

// base/chain.hpp: a list through a link of its members, for lists that are short and under a lock.
//
// A chain is a pointer to its first member, and names the link: the same type may be in several chains
// at a time. It owns nothing. push_back() and the removals walk from the front.

#include "base/assert.hpp"

namespace ums::base::chain {

template <class T>
void push_front(T*& first, T& item, T* T::*link) noexcept {
    item.*link = first;
    first = &item;
}

template <class T>
void push_back(T*& first, T& item, T* T::*link) noexcept {
    T** at = &first;
    while (*at != nullptr) at = &((*at)->*link);
    item.*link = nullptr;
    *at = &item;
}

// Null: the chain is empty.
template <class T>
[[nodiscard]] T* pop_front(T*& first, T* T::*link) noexcept {
    T* const item = first;
    if (item != nullptr) first = item->*link;
    return item;
}

// False: the item is not in the chain.
template <class T>
[[nodiscard]] bool try_remove(T*& first, T& item, T* T::*link) noexcept {
    for (T** at = &first; *at != nullptr; at = &((*at)->*link)) {
        if (*at != &item) continue;
        *at = item.*link;
        return true;
    }
    return false;
}

// Requires: the item is in the chain.
template <class T>
void remove(T*& first, T& item, T* T::*link) noexcept {
    const bool was_there = try_remove(first, item, link);
    UMS_ASSERT(was_there, "an item was removed from a chain that it is not in");
}

}  // namespace ums::base::chain
