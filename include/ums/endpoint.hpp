// SPDX-License-Identifier: MIT
#pragma once

// ums/endpoint.hpp: the address of a socket: IPv4, IPv6 or Unix.
//
//   auto a = ums::net::endpoint::parse("127.0.0.1:8080").value();
//   auto b = ums::net::endpoint::parse("[::1]:8080").value();
//   auto c = ums::net::endpoint::unix_socket("/run/app.sock").value();   // "@name": abstract
//
// A value. Names of hosts are no addresses: see net::resolve().

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>

#include "ums/export.hpp"
#include "ums/result.hpp"

namespace ums::net {

class UMS_EXPORT endpoint {
public:
    endpoint() noexcept = default;  // None: family() is AF_UNSPEC.
    endpoint(const sockaddr* address, socklen_t bytes) noexcept;

    // ADDRESS:PORT, [ADDRESS]:PORT, unix:PATH; ":PORT" and "*:PORT" are any_ipv6(). Fails with
    // invalid_argument.
    static result<endpoint> parse(std::string_view text);
    // In numbers. Fails with invalid_argument.
    static result<endpoint> ip(std::string_view address, std::uint16_t port);
    // Fails with filename_too_long (at most 107 bytes).
    static result<endpoint> unix_socket(std::string_view path);
    static endpoint loopback(std::uint16_t port) noexcept;  // 127.0.0.1
    static endpoint any(std::uint16_t port) noexcept;       // 0.0.0.0
    static endpoint any_ipv6(std::uint16_t port) noexcept;  // [::], and IPv4 as well

    [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
    [[nodiscard]] std::uint16_t port() const noexcept;  // 0: has none
    [[nodiscard]] std::string text() const;             // As parse() reads it.

    [[nodiscard]] const sockaddr* data() const noexcept {
        return reinterpret_cast<const sockaddr*>(&storage_);
    }
    [[nodiscard]] sockaddr* data() noexcept { return reinterpret_cast<sockaddr*>(&storage_); }
    [[nodiscard]] socklen_t size() const noexcept { return bytes_; }
    static constexpr socklen_t capacity = sizeof(sockaddr_storage);
    void resize(socklen_t bytes) noexcept { bytes_ = bytes; }

    friend UMS_EXPORT bool operator==(const endpoint& a, const endpoint& b) noexcept;

private:
    sockaddr_storage storage_{};
    socklen_t bytes_ = 0;
};

}  // namespace ums::net
