// SPDX-License-Identifier: MIT
#include "ums/datagram.hpp"

#include "io/net/names.hpp"

namespace ums::net {

datagram::datagram(const endpoint& at) {
    result<datagram> made = bind(at);
    if (!made) throw std::system_error{made.error(), "ums: cannot bind to " + at.text()};
    *this = std::move(*made);
}

datagram::~datagram() {
    if (fd_.get() >= 0) close();
}

result<datagram> datagram::open(int family) {
    const result<int> fd = io::socket(family, SOCK_DGRAM);
    if (!fd) return result<datagram>::failure(fd.error().value());
    datagram made;
    made.fd_ = impl::owned_fd{*fd};
    return made;
}

result<datagram> datagram::bind(const endpoint& at) {
    result<datagram> made = open(at.family());
    if (!made) return made;
    if (const long r = os::io_call(SYS_bind, made->fd_.get(), at.data(), at.size()); r < 0)
        return result<datagram>::failure(static_cast<int>(-r));
    made->path_ = file_of(at);
    return made;
}

result<void> datagram::connect(const endpoint& peer) {
    return io::connect(fd_.get(), peer.data(), peer.size());
}

result<std::size_t> datagram::receive(void* into, std::size_t bytes, endpoint* from,
                                      const limits& l) {
    if (from == nullptr) return io::recv(fd_.get(), into, bytes, 0, l);
    socklen_t size = endpoint::capacity;
    const auto n = io::recvfrom(fd_.get(), into, bytes, 0, from->data(), &size, l);
    if (n) from->resize(size);
    return n;
}

result<void> datagram::close() {
    const int fd = fd_.release();
    if (fd < 0) return result<void>::failure(EBADF);
    if (!path_.empty()) os::io_call(SYS_unlinkat, AT_FDCWD, path_.c_str(), 0);
    path_.clear();
    return io::close(fd);
}

result<endpoint> datagram::local() const { return name_of(fd_.get(), SYS_getsockname); }

}  // namespace ums::net
