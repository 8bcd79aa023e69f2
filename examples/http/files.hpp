// SPDX-License-Identifier: MIT
#pragma once

// files: the files under the root folder. Nothing outside can be reached, neither by ".." nor by a
// symbolic link: the kernel resolves each path beneath the root (openat2).

#include <sys/types.h>

#include <ctime>
#include <string>
#include <string_view>
#include <utility>

namespace http {

// An open file.
class file {
public:
    file() = default;
    file(int fd, off_t bytes, std::time_t modified) noexcept
        : fd_(fd), bytes_(bytes), modified_(modified) {}
    file(file&& other) noexcept { *this = std::move(other); }
    file& operator=(file&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(bytes_, other.bytes_);
        std::swap(modified_, other.modified_);
        return *this;
    }
    ~file();

    [[nodiscard]] int fd() const noexcept { return fd_; }
    [[nodiscard]] off_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::time_t modified() const noexcept { return modified_; }

private:
    int fd_ = -1;
    off_t bytes_ = 0;
    std::time_t modified_ = 0;
};

class files {
public:
    // Throws std::system_error if `root` is not a folder.
    explicit files(const std::string& root);
    ~files();
    files(const files&) = delete;
    files& operator=(const files&) = delete;

    // Opens the file at the path of a request, which is still percent-encoded; for a path that ends
    // in '/', the index.html there. Returns 200; 301 for a folder whose '/' is missing; or the
    // status to refuse with. `name` becomes the decoded path.
    unsigned open(std::string_view path, file& opened, std::string& name) const;

    // The Content-Type for a file of that name.
    static std::string_view type(std::string_view name) noexcept;

private:
    int root_;
};

// Returns false if the encoding is not valid.
bool percent_decode(std::string_view in, std::string& out);

}  // namespace http
