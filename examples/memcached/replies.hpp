// SPDX-License-Identifier: MIT
#pragma once

// replies: what to send, in order: text, and values that are sent straight from their items.
//
// Small values are copied, which costs less than a reference and one more piece for the kernel.

#include <sys/uio.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store.hpp"

namespace memcached {

class replies {
public:
    // Up to this size a value is copied.
    static constexpr std::size_t copied = 1024;

    void text(std::string_view s) { text_.append(s); }
    void character(char c) { text_.push_back(c); }
    void number(std::uint64_t n) {
        char digits[20];
        text_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
    }
    // Adds the item's value; `it` keeps it until it is sent.
    void value(item_ref it) {
        values_.push_back({text_.size(), std::move(it)});
        value_bytes_ += values_.back().it->value_bytes;
    }

    [[nodiscard]] bool empty() const noexcept { return text_.empty() && values_.empty(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return text_.size() + value_bytes_ - sent_; }

    // Takes back what was added since mark(). Requires: none of it was sent.
    struct mark {
        std::size_t text, values;
    };
    [[nodiscard]] mark here() const noexcept { return {text_.size(), values_.size()}; }
    void take_back(mark to);

    // Fills in the next pieces to send; returns how many. Requires: most is at least 2.
    unsigned pieces(iovec* into, unsigned most) const noexcept;
    // Call when that many bytes were sent.
    void sent(std::size_t bytes) noexcept;
    // Call when everything was sent. Keeps a little memory.
    void clear() noexcept;
    // Gives all memory back, too.
    void release() noexcept;

private:
    struct piece {
        std::size_t at;  // How many bytes of the text come before it.
        item_ref it;
    };
    std::string text_;
    std::vector<piece> values_;
    std::size_t value_bytes_ = 0;
    std::size_t sent_ = 0;
    // The first value that is not wholly sent, and what was sent up to the end of the one before:
    // that many bytes, and that many of the text. So even among a hundred thousand values none is
    // looked at twice.
    std::size_t first_ = 0;
    std::size_t before_first_ = 0;
    std::size_t text_before_first_ = 0;
};

}  // namespace memcached
