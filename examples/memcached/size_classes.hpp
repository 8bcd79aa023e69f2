// SPDX-License-Identifier: MIT
#pragma once

// size_classes: the sizes that items' memory is rounded up to, each 1.25 times the one before. A
// small number of sizes keeps the heap from fragmenting, because a freed block fits the next item
// of its class.
//
// The sizes are memcached's, so that `me` and `stats` show the class numbers that its users know.

#include <array>
#include <cstddef>
#include <cstdint>

namespace memcached {

class size_classes {
public:
    // The largest block that has a class of its own; larger items are of the last class.
    static constexpr std::size_t largest = 512 * 1024;

    constexpr size_classes() noexcept {
        double size = 96;
        while (count_ + 1 < most && size <= largest / 1.25) {
            const auto whole = (static_cast<std::size_t>(size) + 7) / 8 * 8;
            bytes_[count_++] = static_cast<std::uint32_t>(whole);
            size = static_cast<double>(whole) * 1.25;
        }
        bytes_[count_++] = largest;
    }

    // The class of a block of `bytes`: 1 for the smallest.
    [[nodiscard]] constexpr unsigned of(std::size_t bytes) const noexcept {
        unsigned low = 0, high = count_ - 1;
        while (low < high) {
            const unsigned middle = (low + high) / 2;
            if (bytes_[middle] < bytes)
                low = middle + 1;
            else
                high = middle;
        }
        return low + 1;
    }

    // The size of the block for an item of `bytes`.
    [[nodiscard]] constexpr std::size_t rounded(std::size_t bytes) const noexcept {
        return bytes > largest ? (bytes + 4095) / 4096 * 4096 : bytes_[of(bytes) - 1];
    }

    [[nodiscard]] constexpr unsigned count() const noexcept { return count_; }
    [[nodiscard]] constexpr std::size_t bytes(unsigned number) const noexcept {
        return bytes_[number - 1];
    }

private:
    static constexpr unsigned most = 63;
    std::array<std::uint32_t, most> bytes_{};
    unsigned count_ = 0;
};

inline constexpr size_classes classes;

}  // namespace memcached
