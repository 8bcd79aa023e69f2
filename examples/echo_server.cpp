// SPDX-License-Identifier: MIT

// echo_server [ADDRESS:PORT | unix:PATH]: sends back what it receives, with a fiber for each
// connection.
//
// Without an address it serves on a free port, speaks to itself once, and ends.
//
// Output:
//   echo: hello

#include <chrono>
#include <cstdio>
#include <iostream>
#include <system_error>

#include <ums/ums.hpp>

namespace {

void serve(ums::net::stream peer) {
    char buffer[16 * 1024];
    for (;;) {
        const auto n = peer.read(buffer, sizeof buffer);
        if (!n || *n == 0) return;  // The client has hung up.
        if (!peer.write_all(buffer, *n)) return;
    }
}

void accept_all(ums::net::listener& door) {
    while (auto peer = door.accept()) {
        try {
            ums::fiber{serve, std::move(*peer)}.detach();
        } catch (const std::system_error& error) {
            // There is no stack: this client is turned away.
            std::cerr << "echo_server: " << error.what() << '\n';
            (void)peer->close();
            // Meanwhile other connections may end.
            ums::this_fiber::sleep_for(std::chrono::milliseconds{100});
        }
    }
}

void speak(const ums::net::endpoint& to) {
    auto server = ums::net::stream::connect(to).value();
    server.write_all("hello").value();
    char answer[5];
    server.read_all(answer, sizeof answer).value();
    std::printf("echo: %.5s\n", answer);
}

}  // namespace

int main(int argc, char** argv) {
    return ums::run([=] {
        if (argc > 2) {
            std::cerr << "usage: echo_server [ADDRESS:PORT | unix:PATH]\n";
            return 2;
        }
        const bool demo = argc == 1;
        const auto at = demo ? ums::net::endpoint::loopback(0) : ums::net::endpoint::parse(argv[1]);
        if (!at) {
            std::cerr << "echo_server: " << argv[1]
                      << ": expected ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH\n";
            return 2;
        }
        auto door = ums::net::listener::open(*at);
        if (!door) {
            std::cerr << "echo_server: " << at->text() << ": " << door.error().message() << '\n';
            return 1;
        }
        ums::fiber acceptor{accept_all, std::ref(*door)};
        if (demo) {
            speak(door->local().value());
            door->close();
        } else {
            std::printf("listening on %s\n", door->local().value().text().c_str());
            std::fflush(stdout);
        }
        acceptor.join();
        return 0;
    });
}
