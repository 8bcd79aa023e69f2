// SPDX-License-Identifier: MIT
#pragma once

// ums/datagram.hpp: a socket for messages: UDP, or Unix datagrams.
//
// A datagram owns its descriptor; the destructor closes it. close() removes a Unix socket's file.
//
// Blocking: send(), send_to() and receive() park the fiber; a plain kernel thread blocks.
// Lifetime: moved and destroyed only while no other fiber uses it. To end another fiber's wait,
//           call close().
// Errors:   the constructor throws std::system_error; the functions return the error, as in
//           ums/io.hpp.
// Cost:     as ums/io.hpp.

#include <cstddef>
#include <string>
#include <utility>

#include "ums/endpoint.hpp"
#include "ums/impl/owned_fd.hpp"
#include "ums/io.hpp"

namespace ums::net {

class UMS_EXPORT datagram {
public:
    datagram() noexcept = default;  // No socket.
    // Binds to `at`. Throws std::system_error.
    explicit datagram(const endpoint& at);
    datagram(datagram&& other) noexcept
        : fd_{std::move(other.fd_)}, path_{std::exchange(other.path_, {})} {}
    datagram& operator=(datagram&& other) noexcept {
        fd_ = std::move(other.fd_);
        std::swap(path_, other.path_);
        return *this;
    }
    ~datagram();

    // An unbound socket, for sending. `family` is AF_INET, AF_INET6 or AF_UNIX.
    static result<datagram> open(int family);
    // A socket bound to `at`.
    static result<datagram> bind(const endpoint& at);

    // From then on send() and receive() exchange messages with that peer only.
    [[nodiscard]] result<void> connect(const endpoint& peer);

    // Receives one message and returns how many bytes it stored; bytes that do not fit are lost.
    // *from, unless null, gets the sender's address.
    result<std::size_t> receive(void* into, std::size_t bytes, endpoint* from = nullptr,
                                const limits& l = {});
    // Sends one message to the connected peer.
    result<std::size_t> send(const void* from, std::size_t bytes, const limits& l = {}) {
        return io::send(fd_.get(), from, bytes, 0, l);
    }
    // Sends one message to `to`.
    result<std::size_t> send_to(const void* from, std::size_t bytes, const endpoint& to,
                                const limits& l = {}) {
        return io::sendto(fd_.get(), from, bytes, 0, to.data(), to.size(), l);
    }

    // Closes the socket; waits of other fibers on it fail with bad_file_descriptor.
    result<void> close();

    // The bound address; whether there is a socket; its descriptor, or -1.
    [[nodiscard]] result<endpoint> local() const;
    [[nodiscard]] bool is_open() const noexcept { return fd_.get() >= 0; }
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }

private:
    impl::owned_fd fd_;
    std::string path_;
};

}  // namespace ums::net
