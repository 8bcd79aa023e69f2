// SPDX-License-Identifier: MIT
#pragma once

// bench/common/listen.hpp: the start of every hand-written server.
//
// A server listens on 127.0.0.1 at a port that the kernel chooses, prints the port in one line, and
// serves until it is killed.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

namespace bench {

inline int checked(int result, const char* call) {
    if (result < 0) throw std::system_error{errno, std::generic_category(), call};
    return result;
}

// Allows as many descriptors as the process may have.
inline std::uint64_t raise_descriptor_limit() {
    rlimit limit{};
    checked(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    checked(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
    return limit.rlim_cur;
}

// Prints the line that servers/measure.py waits for.
inline void announce(std::uint16_t port) {
    std::printf("listening on 127.0.0.1:%u\n", unsigned{port});
    if (std::fflush(stdout) != 0) throw std::runtime_error{"cannot write to stdout"};
}

// Returns a socket that listens at a free port of 127.0.0.1, and where. `flags` is SOCK_NONBLOCK or
// 0.
inline int listen_at(sockaddr_in& address, int flags) {
    const int listener = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "socket");
    address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    checked(bind(listener, any, length), "bind");
    checked(listen(listener, 4096), "listen");
    checked(getsockname(listener, any, &length), "getsockname");
    return listener;
}

// The same, for a server: it says where on stdout.
inline int listen_on_loopback(int flags) {
    raise_descriptor_limit();
    sockaddr_in address;
    const int listener = listen_at(address, flags);
    announce(ntohs(address.sin_port));
    return listener;
}

inline void send_at_once(int socket) {
    const int on = 1;
    checked(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
}

// The main() of a server.
template <class Serve>
int run_server(Serve serve) {
    try {
        serve();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

}  // namespace bench
