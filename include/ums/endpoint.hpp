// SPDX-License-Identifier: MIT
#pragma once

// ums/endpoint.hpp: the address of a socket: IPv4, IPv6 or Unix.
//
//   auto a = ums::net::endpoint::parse("127.0.0.1:8080").value();
//   auto b = ums::net::endpoint::parse("[::1]:8080").value();
//   auto c = ums::net::endpoint::unix_socket("/run/app.sock").value();   // "@name": abstract
//
// An endpoint is a value: copying it copies the address. It takes addresses in numbers only;
// net::resolve() looks up host names.
//
// Blocking: never. No function asks a name server.
// Errors:   in a result: invalid_argument, or filename_too_long for a Unix path. text(), parse()
//           and ip() may throw std::bad_alloc.
// Cost:     a copy of 136 bytes; parse(), ip() and text() may allocate.

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>

#include "ums/export.hpp"
#include "ums/result.hpp"

namespace ums::net {

class UMS_EXPORT endpoint {
public:
    endpoint() noexcept = default;  // No address: family() is AF_UNSPEC.
    // Copies at most capacity bytes of `address`.
    endpoint(const sockaddr* address, socklen_t bytes) noexcept;

    // Reads ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH. ":PORT" and "*:PORT" mean any_ipv6(). Fails
    // with invalid_argument, or as unix_socket().
    static result<endpoint> parse(std::string_view text);
    // An address in numbers, IPv4 or IPv6 ("fe80::1%eth0" names an interface). Fails with
    // invalid_argument.
    static result<endpoint> ip(std::string_view address, std::uint16_t port);
    // A path of at most 107 bytes; "@name" is an abstract name. Fails with filename_too_long, or
    // with invalid_argument for an empty path or one with a zero byte.
    static result<endpoint> unix_socket(std::string_view path);
    static endpoint loopback(std::uint16_t port) noexcept;  // 127.0.0.1
    static endpoint any(std::uint16_t port) noexcept;       // 0.0.0.0
    static endpoint any_ipv6(std::uint16_t port) noexcept;  // [::], which takes IPv4 as well

    // AF_INET, AF_INET6, AF_UNIX or AF_UNSPEC.
    [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
    [[nodiscard]] std::uint16_t port() const noexcept;  // 0 if the family has no ports.
    [[nodiscard]] std::string text() const;             // In the form that parse() reads.

    // The address as system calls take it. To receive one, pass data() and capacity, then resize().
    [[nodiscard]] const sockaddr* data() const noexcept {
        return reinterpret_cast<const sockaddr*>(&storage_);
    }
    [[nodiscard]] sockaddr* data() noexcept { return reinterpret_cast<sockaddr*>(&storage_); }
    [[nodiscard]] socklen_t size() const noexcept { return bytes_; }
    static constexpr socklen_t capacity = sizeof(sockaddr_storage);
    void resize(socklen_t bytes) noexcept { bytes_ = bytes < capacity ? bytes : capacity; }

    friend UMS_EXPORT bool operator==(const endpoint& a, const endpoint& b) noexcept;

private:
    sockaddr_storage storage_{};
    socklen_t bytes_ = 0;
};

}  // namespace ums::net
