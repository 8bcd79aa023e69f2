// SPDX-License-Identifier: MIT
#pragma once

// ums/listener.hpp: a socket that accepts connections: TCP, or Unix streams.
//
//   ums::net::listener door{ums::net::endpoint::any_ipv6(8080)};
//   while (auto peer = door.accept())
//       ums::fiber{serve, std::move(*peer)}.detach();
//
// A listener owns its descriptor; the destructor closes it. close() removes a Unix socket's file.
//
// Blocking: accept() parks the fiber; a plain kernel thread blocks. At the limit of descriptors it
//           waits too (io::accept()).
// Fairness: several fibers may accept; which of them gets a connection is not specified.
// Lifetime: another fiber may call close(): accept() then fails with bad_file_descriptor. Destroy
//           it when no fiber uses it.
// Errors:   the constructor throws std::system_error; the functions return the error.
// Cost:     as ums/io.hpp.

#include <string>
#include <utility>

#include "ums/impl/owned_fd.hpp"
#include "ums/stream.hpp"

namespace ums::net {

struct listen_options {
    int backlog = 4096;
    bool reuse_address = true;  // SO_REUSEADDR
    bool reuse_port = false;    // SO_REUSEPORT: several listeners share the connections.
    bool no_delay = true;       // TCP_NODELAY for each connection.
    bool ipv6_only = false;     // IPV6_V6ONLY
    unsigned unix_mode = 0;     // Access rights of a Unix socket's file; 0: as umask gives them.
};

class UMS_EXPORT listener {
public:
    listener() noexcept = default;  // No socket.
    // Binds to `at` and listens there. Throws std::system_error.
    explicit listener(const endpoint& at, const listen_options& o = {});
    // Takes over a listening descriptor, such as a supervisor passes.
    explicit listener(int fd) noexcept : fd_{fd} {}
    listener(listener&& other) noexcept;
    listener& operator=(listener&& other) noexcept;
    ~listener();

    // As the constructor, but returns the error.
    static result<listener> open(const endpoint& at, const listen_options& o = {});

    // Waits for a connection and returns it.
    result<stream> accept(const limits& l = {}) { return accept(nullptr, l); }
    // The same; *peer gets the address of the other side.
    result<stream> accept(endpoint* peer, const limits& l = {});

    // Closes the socket; accept() of other fibers fails with bad_file_descriptor.
    result<void> close();

    // The bound address, with the port that the kernel chose for port 0.
    [[nodiscard]] result<endpoint> local() const;
    [[nodiscard]] bool is_open() const noexcept { return fd_.get() >= 0; }
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }

private:
    impl::owned_fd fd_;
    std::string path_;  // The file that close() removes; empty: none.
};

}  // namespace ums::net
