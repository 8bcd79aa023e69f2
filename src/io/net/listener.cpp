// SPDX-License-Identifier: MIT
#include "ums/listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/net/names.hpp"

namespace ums::net {

namespace {

// Binds and listens. Returns 0 or -errno.
long prepare(int fd, const endpoint& at, const listen_options& o) {
    const bool ip = at.family() != AF_UNIX;
    if (ip && o.reuse_address)
        if (const long r = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1); r < 0) return r;
    if (ip && o.reuse_port)
        if (const long r = set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1); r < 0) return r;
    if (at.family() == AF_INET6)
        if (const long r = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, o.ipv6_only); r < 0) return r;
    // Connections inherit it.
    if (ip && o.no_delay)
        if (const long r = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); r < 0) return r;
    if (const long r = os::io_call(SYS_bind, fd, at.data(), at.size()); r < 0) return r;
    const std::string path = file_of(at);
    if (!path.empty() && o.unix_mode != 0)
        if (const long r = os::io_call(SYS_fchmodat, AT_FDCWD, path.c_str(), o.unix_mode); r < 0)
            return r;
    return os::io_call(SYS_listen, fd, o.backlog);
}

}  // namespace

listener::listener(const endpoint& at, const listen_options& o) {
    result<listener> made = open(at, o);
    if (!made) throw std::system_error{made.error(), "ums: cannot listen at " + at.text()};
    *this = std::move(*made);
}

listener::listener(listener&& other) noexcept
    : fd_{std::move(other.fd_)}, path_{std::exchange(other.path_, {})} {}

listener& listener::operator=(listener&& other) noexcept {
    fd_ = std::move(other.fd_);
    std::swap(path_, other.path_);
    return *this;
}

listener::~listener() {
    if (fd_.get() >= 0) close();
}

result<listener> listener::open(const endpoint& at, const listen_options& o) {
    const result<int> fd = io::socket(at.family(), SOCK_STREAM);
    if (!fd) return result<listener>::failure(fd.error().value());
    listener made{*fd};
    const long r = prepare(*fd, at, o);
    if (r < 0) return result<listener>::failure(static_cast<int>(-r));
    made.path_ = file_of(at);
    return made;
}

result<stream> listener::accept(endpoint* peer, const limits& l) {
    socklen_t bytes = endpoint::capacity;
    const result<int> fd = peer != nullptr ? io::accept(fd_.get(), peer->data(), &bytes, l)
                                           : io::accept(fd_.get(), nullptr, nullptr, l);
    if (!fd) return result<stream>::failure(fd.error().value());
    if (peer != nullptr) peer->resize(bytes);
    return stream{*fd};
}

result<void> listener::close() {
    const int fd = fd_.release();
    if (fd < 0) return result<void>::failure(EBADF);
    if (!path_.empty()) os::io_call(SYS_unlinkat, AT_FDCWD, path_.c_str(), 0);
    path_.clear();
    return io::close(fd);
}

result<endpoint> listener::local() const { return name_of(fd_.get(), SYS_getsockname); }

}  // namespace ums::net
