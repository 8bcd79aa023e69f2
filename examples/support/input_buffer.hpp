// SPDX-License-Identifier: MIT
#pragma once

// input_buffer: bytes that were received and not consumed yet. It is small while little comes, so
// that an idle connection holds little memory, and larger for as long as more is there.

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

class input_buffer {
public:
    static constexpr std::size_t small = 1024;
    static constexpr std::size_t large = 64 * 1024;

    [[nodiscard]] std::string_view data() const noexcept {
        return {bytes_.get() + begin_, end_ - begin_};
    }

    // Returns room for more, at least one byte. The buffer grows up to `most` bytes, and beyond if
    // full.
    [[nodiscard]] std::span<char> space(std::size_t most) {
        if (begin_ == end_) {
            begin_ = end_ = 0;
            if (capacity_ > small && !was_full_) resize(small);
        }
        if (capacity_ == 0) resize(small);
        if (end_ == capacity_ || was_full_) {
            if (begin_ != 0) {
                std::memmove(bytes_.get(), bytes_.get() + begin_, end_ - begin_);
                end_ -= begin_;
                begin_ = 0;
            }
            // Input that did not fit before, or that fills half of the buffer, gets more room.
            if (end_ > capacity_ / 2 || (was_full_ && capacity_ < large)) {
                const std::size_t more = capacity_ < large ? large : capacity_ * 2;
                if (more <= most || end_ == capacity_) resize(more);
            }
        }
        return {bytes_.get() + end_, capacity_ - end_};
    }
    void added(std::size_t bytes) noexcept {
        was_full_ = end_ + bytes == capacity_;
        end_ += bytes;
    }
    void consume(std::size_t bytes) noexcept { begin_ += bytes; }
    // Forgets the contents, and keeps the memory if it is not much.
    void clear() noexcept {
        begin_ = end_ = 0;
        was_full_ = false;
        if (capacity_ > large) {
            bytes_.reset();
            capacity_ = 0;
        }
    }

private:
    void resize(std::size_t capacity) {
        std::unique_ptr<char[]> moved{new char[capacity]};
        if (end_ != begin_) std::memcpy(moved.get(), bytes_.get() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        bytes_ = std::move(moved);
        capacity_ = capacity;
    }

    std::unique_ptr<char[]> bytes_;
    std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
    bool was_full_ = false;
};
