// SPDX-License-Identifier: MIT

// memcached-server: see docs/servers.md.

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <ums/run.hpp>

#include "server.hpp"
#include "stop_signals.hpp"

namespace {

// For the program that started the server on any free port.
void write_ports(const memcached::server& server) {
    const char* const path = std::getenv("MEMCACHED_PORT_FILENAME");
    if (path == nullptr) return;
    const std::string part = std::string{path} + ".lck";  // Renamed when it is complete.
    std::FILE* const file = std::fopen(part.c_str(), "w");
    if (file == nullptr) throw std::system_error(errno, std::system_category(), part);
    const auto say = [file](const char* kind, const ums::net::endpoint& at) {
        // [::] stands for IPv4, too; memcached has a socket for each.
        if (at.family() == AF_INET || at == ums::net::endpoint::any_ipv6(at.port()))
            std::fprintf(file, "%s INET: %u\n", kind, unsigned{at.port()});
        if (at.family() == AF_INET6)
            std::fprintf(file, "%s INET6: %u\n", kind, unsigned{at.port()});
    };
    for (const auto& at : server.addresses()) say("TCP", at);
    for (const auto& at : server.udp_addresses()) say("UDP", at);
    std::fclose(file);
    std::rename(part.c_str(), path);
}

}  // namespace

int main(int count, char** words) {
    const memcached::options chosen = memcached::read_options(count, words);
    stop_signals signals;
    try {
        return ums::run(ums::options{.processors = chosen.processors}, [&] {
            memcached::server server{chosen};
            signals.call([&server] { server.stop(); });
            write_ports(server);
            for (const auto& at : server.addresses())
                std::printf("listening on %s\n", at.text().c_str());
            std::fflush(stdout);
            server.run();
            signals.end();
            return EXIT_SUCCESS;
        });
    } catch (const std::exception& error) {
        std::fprintf(stderr, "memcached-server: %s\n", error.what());
        return EXIT_FAILURE;
    }
}
