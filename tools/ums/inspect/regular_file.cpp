// SPDX-License-Identifier: MIT
#include "regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tool::inspect {

regular_file::regular_file(const std::string& path) {
    const int place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (place < 0) {
        error_ = errno;
        return;
    }
    struct stat is {};
    if (::fstat(place, &is) == 0 && S_ISREG(is.st_mode)) {
        // The very file that was looked at, whatever the path names by now. A lease on it, which
        // its owner may take, makes even a regular file wait: O_NONBLOCK refuses instead.
        fd_ = ::open(fmt::format("/proc/self/fd/{}", place).c_str(),
                     O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd_ < 0) error_ = errno;
        size_ = static_cast<std::uint64_t>(is.st_size);
    }
    ::close(place);
}

regular_file::~regular_file() {
    if (fd_ >= 0) ::close(fd_);
}

std::size_t regular_file::read(std::uint64_t offset, void* into, std::size_t bytes) const {
    if (fd_ < 0 || offset >= size_) return 0;
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size_ - offset));
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t n = ::pread(fd_, static_cast<char*>(into) + done, bytes - done,
                                  static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

}  // namespace tool::inspect
