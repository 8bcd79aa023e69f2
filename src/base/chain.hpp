// SPDX-License-Identifier: MIT
#pragma once

// base/chain.hpp: a list linked through its members, for lists that are short and under a lock.
//
// A chain is a pointer to its first member, and names the link, so one object may be in several
// chains at a time. It owns nothing. push_back() and the removals walk from the front.

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

// Null if the chain is empty.
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

namespace ums::base {

// The same as a queue, first come, first served, for lists that may be long: it knows its end.
template <class T, T* T::*link>
class fifo {
public:
    fifo() noexcept = default;
    fifo(const fifo&) = delete;
    fifo& operator=(const fifo&) = delete;

    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    void push(T& item) noexcept {
        item.*link = nullptr;
        *end_ = &item;
        end_ = &(item.*link);
    }
    // Returns null if the queue is empty.
    [[nodiscard]] T* pop() noexcept {
        T* const item = first_;
        if (item == nullptr) return nullptr;
        first_ = item->*link;
        if (first_ == nullptr) end_ = &first_;
        return item;
    }
    // Returns false if the item is not in the queue. Walks from the front.
    [[nodiscard]] bool try_remove(T& item) noexcept {
        for (T** at = &first_; *at != nullptr; at = &((*at)->*link)) {
            if (*at != &item) continue;
            *at = item.*link;
            if (end_ == &(item.*link)) end_ = at;
            return true;
        }
        return false;
    }
    // Forgets its members.
    void clear() noexcept {
        first_ = nullptr;
        end_ = &first_;
    }

private:
    T* first_ = nullptr;
    T** end_ = &first_;
};

}  // namespace ums::base
