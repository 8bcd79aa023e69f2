// SPDX-License-Identifier: MIT
#include "ums/endpoint.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "base/assert.hpp"

namespace ums::net {

namespace {

using found = result<endpoint>;
found invalid() { return found::failure(EINVAL); }

bool parse_port(std::string_view text, std::uint16_t& port) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

template <class T>
endpoint make(const T& address) noexcept {
    return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

template <class T>
T get(const sockaddr_storage& s) noexcept {
    T t;
    std::memcpy(&t, &s, sizeof t);
    return t;
}

endpoint ipv4(std::uint32_t address, std::uint16_t port) noexcept {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(address);
    return make(a);
}

}  // namespace

endpoint::endpoint(const sockaddr* address, socklen_t bytes) noexcept
    : bytes_{std::min(bytes, capacity)} {
    UMS_DEBUG_ASSERT(address != nullptr || bytes_ == 0, "an endpoint was made of no address");
    std::memcpy(&storage_, address, bytes_);
}

found endpoint::parse(std::string_view text) {
    if (text.starts_with("unix:")) return unix_socket(text.substr(5));
    const std::size_t colon = text.rfind(':');
    std::uint16_t port = 0;
    if (colon == text.npos || !parse_port(text.substr(colon + 1), port)) return invalid();
    std::string_view address = text.substr(0, colon);
    if (address.empty() || address == "*") return any_ipv6(port);
    if (address.front() == '[') {
        if (address.back() != ']') return invalid();
        address = address.substr(1, address.size() - 2);
        return address.find(':') != address.npos ? ip(address, port) : invalid();
    }
    return address.find(':') == address.npos ? ip(address, port) : invalid();
}

found endpoint::ip(std::string_view address, std::uint16_t port) {
    if (address.find('\0') != address.npos) return invalid();  // C's functions would end there.
    std::string text{address};
    sockaddr_in four{};
    if (inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
        return make(four);
    }
    sockaddr_in6 six{};
    if (const std::size_t percent = text.find('%'); percent != text.npos) {
        six.sin6_scope_id = if_nametoindex(text.c_str() + percent + 1);
        if (six.sin6_scope_id == 0) return invalid();
        text.resize(percent);
    }
    if (inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) != 1) return invalid();
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    return make(six);
}

found endpoint::unix_socket(std::string_view path) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    if (path.empty() || path.find('\0') != path.npos) return invalid();
    if (path.size() >= sizeof a.sun_path) return found::failure(ENAMETOOLONG);
    std::memcpy(a.sun_path, path.data(), path.size());
    const bool abstract = path.front() == '@';
    if (abstract) a.sun_path[0] = 0;
    return endpoint{
        reinterpret_cast<const sockaddr*>(&a),
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (abstract ? 0 : 1))};
}

endpoint endpoint::loopback(std::uint16_t port) noexcept { return ipv4(INADDR_LOOPBACK, port); }
endpoint endpoint::any(std::uint16_t port) noexcept { return ipv4(INADDR_ANY, port); }

endpoint endpoint::any_ipv6(std::uint16_t port) noexcept {
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    a.sin6_port = htons(port);
    return make(a);
}

std::uint16_t endpoint::port() const noexcept {
    if (family() == AF_INET) return ntohs(get<sockaddr_in>(storage_).sin_port);
    if (family() == AF_INET6) return ntohs(get<sockaddr_in6>(storage_).sin6_port);
    return 0;
}

std::string endpoint::text() const {
    char buffer[INET6_ADDRSTRLEN + IF_NAMESIZE] = "";
    if (family() == AF_INET) {
        const auto a = get<sockaddr_in>(storage_);
        inet_ntop(AF_INET, &a.sin_addr, buffer, sizeof buffer);
        return std::string{buffer} + ":" + std::to_string(port());
    }
    if (family() == AF_INET6) {
        const auto a = get<sockaddr_in6>(storage_);
        inet_ntop(AF_INET6, &a.sin6_addr, buffer, sizeof buffer);
        std::string address{buffer};
        if (a.sin6_scope_id != 0 && if_indextoname(a.sin6_scope_id, buffer) != nullptr)
            address += std::string{"%"} + buffer;
        return "[" + address + "]:" + std::to_string(port());
    }
    if (family() == AF_UNIX) {
        const auto a = get<sockaddr_un>(storage_);
        // The kernel counts the zero byte that a path of the greatest length has no room for.
        const std::size_t all = std::min<std::size_t>(bytes_, sizeof a);
        const std::size_t bytes = all - std::min(all, offsetof(sockaddr_un, sun_path));
        if (bytes == 0) return "unix:";  // A Unix socket without a name.
        if (a.sun_path[0] == 0) return "unix:@" + std::string(a.sun_path + 1, bytes - 1);
        return "unix:" + std::string(a.sun_path, strnlen(a.sun_path, bytes));
    }
    return "";
}

bool operator==(const endpoint& a, const endpoint& b) noexcept {
    return a.bytes_ == b.bytes_ && std::memcmp(&a.storage_, &b.storage_, a.bytes_) == 0;
}

}  // namespace ums::net
