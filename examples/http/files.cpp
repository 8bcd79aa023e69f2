// SPDX-License-Identifier: MIT
#include "files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace http {

file::~file() {
    if (fd_ >= 0) ::close(fd_);
}

files::files(const std::string& root)
    : root_(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    if (root_ < 0) throw std::system_error(errno, std::system_category(), root);
}

files::~files() { ::close(root_); }

bool percent_decode(std::string_view in, std::string& out) {
    const auto digit = [](char c) {
        if (c >= '0' && c <= '9') return c - '0';
        const char lower = static_cast<char>(c | 0x20);
        return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    };
    out.clear();
    for (std::size_t i = 0; i < in.size(); ++i) {
        if (in[i] != '%') {
            out += in[i];
            continue;
        }
        if (i + 2 >= in.size()) return false;
        const int high = digit(in[i + 1]), low = digit(in[i + 2]);
        if (high < 0 || low < 0) return false;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return true;
}

unsigned files::open(std::string_view path, file& opened, std::string& name) const {
    if (!percent_decode(path, name) || name.find('\0') != std::string::npos) return 400;
    std::string relative = name.substr(1);
    if (relative.empty() || relative.ends_with('/')) relative += "index.html";
    open_how how{};
    // Non-blocking, because a pipe in the folder must not block us.
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    // EAGAIN means a rename at the same time; or that another process has had a lease of the file
    // for many seconds.
    long fd = -1;
    for (int tries = 10; fd < 0 && tries > 0; --tries) {
        fd = syscall(SYS_openat2, root_, relative.c_str(), &how, sizeof how);
        if (fd < 0 && errno != EINTR && errno != EAGAIN) break;
    }
    if (fd < 0) {
        if (errno == EAGAIN || errno == EINTR || errno == EMFILE || errno == ENFILE ||
            errno == ENOMEM)
            return 503;
        return errno == EACCES || errno == EPERM || errno == EXDEV ? 403 : 404;
    }
    struct stat status {};
    if (fstat(static_cast<int>(fd), &status) != 0 || !S_ISREG(status.st_mode)) {
        ::close(static_cast<int>(fd));
        return S_ISDIR(status.st_mode) ? 301 : 404;
    }
    opened = file{static_cast<int>(fd), status.st_size, status.st_mtim.tv_sec};
    name = "/" + relative;
    return 200;
}

std::string_view files::type(std::string_view name) noexcept {
    struct known {
        std::string_view suffix, type;
    };
    static constexpr known all[] = {{".html", "text/html; charset=utf-8"},
                                    {".css", "text/css; charset=utf-8"},
                                    {".js", "text/javascript; charset=utf-8"},
                                    {".json", "application/json"},
                                    {".txt", "text/plain; charset=utf-8"},
                                    {".md", "text/markdown; charset=utf-8"},
                                    {".svg", "image/svg+xml"},
                                    {".png", "image/png"},
                                    {".jpg", "image/jpeg"},
                                    {".jpeg", "image/jpeg"},
                                    {".gif", "image/gif"},
                                    {".webp", "image/webp"},
                                    {".ico", "image/x-icon"},
                                    {".pdf", "application/pdf"},
                                    {".wasm", "application/wasm"},
                                    {".xml", "application/xml"}};
    for (const known& k : all)
        if (name.ends_with(k.suffix)) return k.type;
    return "application/octet-stream";
}

}  // namespace http
