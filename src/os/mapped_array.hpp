// SPDX-License-Identifier: MIT
#pragma once

// os/mapped_array.hpp: a growable array of plain values in kernel memory.
//
// It doubles by mremap, which moves pages instead of copying them. Growing takes O(1) system calls;
// everything else is an array. Running out of memory is fatal, because its users are the
// scheduler's queues, which have no caller to report to.

#include <cstddef>
#include <type_traits>

#include "base/assert.hpp"
#include "base/look_inside.hpp"
#include "os/memory.hpp"

namespace ums::os {

template <class T>
class mapped_array {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    mapped_array() noexcept = default;
    mapped_array(const mapped_array&) = delete;
    mapped_array& operator=(const mapped_array&) = delete;
    ~mapped_array() { clear(); }

    T& operator[](std::size_t i) noexcept { return data_[i]; }
    const T& operator[](std::size_t i) const noexcept { return data_[i]; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    void push_back(T value) noexcept {
        if (size_ == capacity_) grow();
        data_[size_++] = value;
    }
    void pop_back() noexcept { --size_; }

    // Gives the memory back if it is more than a page. Requires: the array is empty.
    void shrink() noexcept {
        if (capacity_ * sizeof(T) > page_bytes) clear();
    }

    // Gives the memory back.
    void clear() noexcept {
        if (data_ != nullptr) unmap(data_, capacity_ * sizeof(T));
        data_ = nullptr;
        size_ = capacity_ = 0;
    }

private:
    friend struct ums::look_inside;
    void grow() noexcept {
        const std::size_t bytes = capacity_ * sizeof(T);
        const std::size_t new_bytes = bytes == 0 ? page_bytes : bytes * 2;
        void* at = nullptr;
        if (bytes == 0) {
            at = map(new_bytes);
        } else {
            const long moved = system.mremap(data_, bytes, new_bytes);
            at = moved < 0 && moved > -4096 ? nullptr : reinterpret_cast<void*>(moved);
        }
        if (at == nullptr) base::fatal("out of memory: a queue of %zu entries", size_);
        data_ = static_cast<T*>(at);
        capacity_ = new_bytes / sizeof(T);
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace ums::os
