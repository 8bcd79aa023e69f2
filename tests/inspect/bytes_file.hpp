// SPDX-License-Identifier: MIT
#pragma once

// tests/inspect/bytes_file.hpp: a file made of bytes, which is nowhere but in the memory.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

class bytes_file {
public:
    bytes_file(const void* data, std::size_t size) : fd_{memfd_create("bytes", MFD_CLOEXEC)} {
        if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
    }
    ~bytes_file() { close(fd_); }
    bytes_file(const bytes_file&) = delete;
    bytes_file& operator=(const bytes_file&) = delete;
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    const int fd_;
};
