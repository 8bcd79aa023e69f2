// SPDX-License-Identifier: MIT
#pragma once

// ums/listener.hpp: where connections arrive.
//
//   ums::net::listener door{ums::net::endpoint::any_ipv6(8080)};
//   while (auto peer = door.accept())
//       ums::fiber{serve, std::move(*peer)}.detach();
//
// Blocking: accept() parks the fiber. At the limit of descriptors it waits too (io::accept()).
// Lifetime: close() may be called by another fiber: accept() then fails with bad_file_descriptor. Destroyed when
//           no fiber uses it. A Unix socket's file is removed by close().
// Errors:   the constructor throws std::system_error; open() returns the error.

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
    unsigned unix_mode = 0;     // Not 0: the access rights of a Unix socket's file.
};

class UMS_EXPORT listener {
public:
    listener() noexcept = default;  // None.
    explicit listener(const endpoint& at, const listen_options& o = {});
    // Takes over a listening descriptor, as a supervisor passes it.
    explicit listener(int fd) noexcept : fd_{fd} {}
    listener(listener&& other) noexcept;
    listener& operator=(listener&& other) noexcept;
    ~listener();

    static result<listener> open(const endpoint& at, const listen_options& o = {});

    result<stream> accept(const limits& l = {}) { return accept(nullptr, l); }
    // Also says who it is.
    result<stream> accept(endpoint* peer, const limits& l = {});

    result<void> close();

    [[nodiscard]] result<endpoint> local() const;  // With the port that was chosen for port 0.
    [[nodiscard]] bool is_open() const noexcept { return fd_.get() >= 0; }
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }

private:
    impl::owned_fd fd_;
    std::string path_;  // To remove.
};

}  // namespace ums::net
