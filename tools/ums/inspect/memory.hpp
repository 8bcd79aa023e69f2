// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/memory.hpp: the memory of the process that is inspected.
//
// Mistrust everything read from it: it changes while it is read, and a core file may hold anything.

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace tool::inspect {

using address = std::uint64_t;

// One block to be read. is_read says whether all of it was there.
struct piece {
    address at = 0;
    void* into = nullptr;
    std::size_t bytes = 0;
    bool is_read = false;
};

class memory {
public:
    virtual ~memory() = default;

    // Reads many blocks at the cost of few system calls. Throws std::system_error if the process is
    // gone or must not be inspected.
    virtual void read(std::span<piece> pieces) const = 0;

    [[nodiscard]] bool read(address at, void* into, std::size_t bytes) const {
        piece one{at, into, bytes};
        read(std::span{&one, 1});
        return one.is_read;
    }
    template <class T>
    [[nodiscard]] std::optional<T> get(address at) const {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        if (!read(at, &value, sizeof value)) return std::nullopt;
        return value;
    }
    // The text up to the zero that ends it, at most `most` bytes. Empty if it cannot be read.
    [[nodiscard]] std::string text(address at, std::size_t most) const;
};

// A T inside bytes that were read. Requires: it lies inside them.
template <class T>
[[nodiscard]] T at_offset(std::span<const char> bytes, std::size_t offset) {
    T value{};
    if (offset <= bytes.size() && sizeof value <= bytes.size() - offset)
        std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

}  // namespace tool::inspect
