// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/regular_file.hpp: a file whose path somebody else has chosen.
//
// A path in another process's maps, or in a core file, may by now name a pipe, a terminal or a
// device. Opening those can wait for ever, or change something. So the kind is looked at first, and
// nothing is opened but a regular file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace tool::inspect {

class regular_file {
public:
    // Never waits for another process.
    explicit regular_file(const std::string& path);
    ~regular_file();
    regular_file(const regular_file&) = delete;
    regular_file& operator=(const regular_file&) = delete;

    [[nodiscard]] bool is_open() const { return fd_ >= 0; }
    // As errno says it; 0: there is such a file, but it is no regular one.
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }
    // Returns how many of the bytes are there.
    std::size_t read(std::uint64_t offset, void* into, std::size_t bytes) const;
    template <class T>
    bool get(std::uint64_t offset, T& value) const {
        return read(offset, &value, sizeof value) == sizeof value;
    }
    // Hands the descriptor over; -1: it is not open.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
    int error_ = 0;
    std::uint64_t size_ = 0;
};

}  // namespace tool::inspect
