// SPDX-License-Identifier: MIT
#include "output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "usage.hpp"

namespace tool {

output_file::output_file(std::string_view option, std::string path) : path_{std::move(path)} {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    is_new_ = file_ >= 0;
    if (!is_new_ && errno == EEXIST) file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0)
        throw usage_error{fmt::format("{}: expected a file that can be written, got '{}': {}",
                                      option, path_, std::strerror(errno))};
}

output_file::~output_file() {
    close(file_);
    if (is_new_ && !is_written_) unlink(path_.c_str());
}

void output_file::write(std::string_view text) {
    const auto fail = [&] {
        throw std::system_error{errno, std::generic_category(), "cannot write " + path_};
    };
    struct stat what {};
    if (fstat(file_, &what) != 0) fail();
    if (S_ISREG(what.st_mode) && ftruncate(file_, 0) != 0) fail();
    while (!text.empty()) {
        const auto n = ::write(file_, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail();
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    is_written_ = true;
}

}  // namespace tool
