// SPDX-License-Identifier: MIT
#pragma once

// ums/datagram.hpp: a socket for messages: UDP, or Unix datagrams.
//
// Blocking, Errors, Cost, Lifetime: as ums/stream.hpp. A Unix socket's file is removed by close().

#include <cstddef>
#include <string>
#include <utility>

#include "ums/endpoint.hpp"
#include "ums/impl/owned_fd.hpp"
#include "ums/io.hpp"

namespace ums::net {

class UMS_EXPORT datagram {
public:
    datagram() noexcept = default;  // None.
    // Bound to `at`. Throws std::system_error.
    explicit datagram(const endpoint& at);
    datagram(datagram&& other) noexcept
        : fd_{std::move(other.fd_)}, path_{std::exchange(other.path_, {})} {}
    datagram& operator=(datagram&& other) noexcept {
        fd_ = std::move(other.fd_);
        std::swap(path_, other.path_);
        return *this;
    }
    ~datagram();

    // Not bound, for sending.
    static result<datagram> open(int family);
    static result<datagram> bind(const endpoint& at);

    // From then on send() and receive() are with that peer only.
    [[nodiscard]] result<void> connect(const endpoint& peer);

    // One message; what does not fit is lost.
    result<std::size_t> receive(void* into, std::size_t bytes, endpoint* from = nullptr,
                                const limits& l = {});
    result<std::size_t> send(const void* from, std::size_t bytes, const limits& l = {}) {
        return io::send(fd_.get(), from, bytes, 0, l);
    }
    result<std::size_t> send_to(const void* from, std::size_t bytes, const endpoint& to,
                                const limits& l = {}) {
        return io::sendto(fd_.get(), from, bytes, 0, to.data(), to.size(), l);
    }

    result<void> close();

    [[nodiscard]] result<endpoint> local() const;
    [[nodiscard]] bool is_open() const noexcept { return fd_.get() >= 0; }
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }

private:
    impl::owned_fd fd_;
    std::string path_;
};

}  // namespace ums::net
