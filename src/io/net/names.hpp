// SPDX-License-Identifier: MIT
#pragma once

// io/net/names.hpp: the addresses of a socket's two ends.

#include "os/io_calls.hpp"
#include "ums/endpoint.hpp"

namespace ums::net {

// `number` is SYS_getsockname or SYS_getpeername.
inline result<endpoint> name_of(int fd, long number) {
    endpoint e;
    socklen_t bytes = endpoint::capacity;
    const long r = os::io_call(number, fd, e.data(), &bytes);
    if (r < 0) return result<endpoint>::failure(static_cast<int>(-r));
    e.resize(bytes);
    return e;
}

// The file of a Unix socket that is bound to `at`, or "".
inline std::string file_of(const endpoint& at) {
    if (at.family() != AF_UNIX) return "";
    std::string text = at.text().substr(5);
    return text.starts_with('@') ? "" : text;
}

inline long set_option(int fd, int level, int name, int value) noexcept {
    return os::io_call(SYS_setsockopt, fd, level, name, &value, sizeof value);
}

}  // namespace ums::net
