// SPDX-License-Identifier: MIT

// io_socket_st [CONNECTIONS [REQUESTS]]: an HTTP server and its client, one kernel thread each: a
// fiber for every connection on both sides, the server's in a cluster of their own.

#include "run.hpp"

#include <atomic>
#include <string_view>
#include <vector>

constexpr std::string_view request =
    "HEAD / HTTP/1.1\r\nHost: host:port\r\nConnection: close\r\n\r\n";
constexpr std::string_view response =
    "HTTP/1.1 200 OK\n"
    "Content-Length: 12\n"
    "Content-Type: text/plain; charset=utf-8\n"
    "\n"
    "Hello World!";

// The suite's programs read once for each message, and so does this one.
static std::uint64_t answer(ums::net::stream peer) {
    char buffer[4096];
    std::uint64_t served = 0;
    for (;; ++served) {
        const auto n = peer.read(buffer, sizeof buffer);
        if (!n || *n == 0 || !peer.write_all(response)) return served;
    }
}

static std::uint64_t ask(const ums::net::endpoint& server, std::uint64_t requests) {
    auto connection = ums::net::stream::connect(server).value();
    char buffer[4096];
    for (std::uint64_t i = 0; i < requests; ++i) {
        if (!connection.write_all(request)) return i;
        const auto n = connection.read(buffer, sizeof buffer);
        if (!n || *n == 0) return i;
    }
    return requests;
}

int main(int argc, char** argv) {
    const auto connections = std::max<std::uint64_t>(bench::number(argc, argv, 1, 20), 1);
    const auto requests = bench::number(argc, argv, 2, 100'000);
    std::printf("connections: %llu\n", static_cast<unsigned long long>(connections));
    return ums::run(ums::options{.processors = 1}, [connections, requests] {
        ums::net::listener door{ums::net::endpoint::loopback(0)};
        const auto address = door.local().value();
        ums::cluster apart{{.name = "server", .processors = 1}};
        std::atomic<std::uint64_t> served{0}, asked{0};
        ums::fiber server{{.cluster = &apart}, [&] {
                              ums::scope all;
                              for (std::uint64_t i = 0; i < connections; ++i)
                                  all.spawn([&served, peer = door.accept().value()]() mutable {
                                      served += answer(std::move(peer));
                                  });
                              all.join();
                          }};
        const bench::stopwatch watch;
        ums::scope clients;
        for (std::uint64_t i = 0; i < connections; ++i) {
            const auto mine = requests * (i + 1) / connections - requests * i / connections;
            clients.spawn([&asked, &address, mine] { asked += ask(address, mine); });
        }
        clients.join();
        server.join();
        bench::report("requests", requests, watch.us(), true);
        return bench::check("requests", asked, requests) |
               bench::check("answers", served, requests);
    });
}
