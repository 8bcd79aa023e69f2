// SPDX-License-Identifier: MIT

// http: a fiber for each connection, which knows as much of HTTP as the hand-written loops: what
// fibers and their I/O cost, without what a real server does.

#include <ums/net.hpp>
#include <ums/ums.hpp>

#include <array>
#include <string>

#include "../common/listen.hpp"
#include "request_ends.hpp"

namespace {

void serve(ums::net::stream peer) {
    std::array<char, 2048> buffer;
    bench::request_ends ends;
    std::string out;
    for (;;) {
        const auto n = peer.read(buffer.data(), buffer.size());
        if (!n || *n == 0) return;
        out.clear();
        for (auto left = ends.count({buffer.data(), *n}); left > 0; --left) out += bench::response;
        if (!out.empty() && !peer.write(out)) return;
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
