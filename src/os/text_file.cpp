// SPDX-License-Identifier: MIT
#include "os/text_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <system_error>

#include "os/system.hpp"

namespace ums::os {

namespace {

void throw_if_short_of(int error, const std::string& path) {
    if (error == EMFILE || error == ENFILE || error == ENOMEM)
        throw std::system_error{error, std::generic_category(), "ums: cannot look at " + path};
}

}  // namespace

std::string read_text(const std::string& path) {
    const long fd = system.open_at(AT_FDCWD, path.c_str());
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{
        fd >= 0 ? ::fdopen(static_cast<int>(fd), "r") : nullptr, &std::fclose};
    if (file == nullptr) {
        const int error = fd < 0 ? static_cast<int>(-fd) : errno;
        if (fd >= 0) system.close_fd(static_cast<int>(fd));
        throw_if_short_of(error, path);
        return "";
    }
    std::string text;
    char part[1024];  // It may be on the stack of a small fiber.
    for (std::size_t n; (n = std::fread(part, 1, sizeof part, file.get())) != 0;)
        text.append(part, n);
    if (std::ferror(file.get()) != 0) throw_if_short_of(errno, path);
    return text;
}

std::string first_line(const std::string& path) {
    const std::string text = read_text(path);
    return text.substr(0, text.find('\n'));
}

}  // namespace ums::os
