// SPDX-License-Identifier: MIT

// echo: a fiber for each connection.

#include <ums/net.hpp>
#include <ums/ums.hpp>

#include <array>

#include "../common/listen.hpp"

namespace {

void serve(ums::net::stream peer) {
    std::array<std::byte, 1024> buffer;
    for (;;) {
        const auto n = peer.read(buffer);
        if (!n || *n == 0) return;
        if (!peer.write_all(std::span{buffer}.first(*n))) return;
    }
}

void run() {
    bench::raise_descriptor_limit();
    ums::run(ums::options{.processors = 1}, [] {
        ums::net::listener door{ums::net::endpoint::loopback(0)};
        bench::announce(door.local().value().port());
        for (;;) ums::fiber{serve, door.accept().value()}.detach();
        return 0;
    });
}

}  // namespace

int main() { return bench::run_server(run); }
