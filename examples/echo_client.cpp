// SPDX-License-Identifier: MIT

// echo_client [ADDRESS:PORT | unix:PATH]: sends the lines of standard input to a server, and prints
// what comes back.
//
// Reading and writing go on at the same time, each in a fiber. Without an address it speaks to a
// peer in the same program.
//
// Output:
//   one
//   two

#include <cstdio>
#include <iostream>
#include <string>

#include <ums/ums.hpp>

namespace {

// Prints what comes back, until the server hangs up.
void print_all(ums::net::stream& server) {
    char buffer[4096];
    for (;;) {
        const auto n = server.read(buffer, sizeof buffer);
        if (!n || *n == 0) return;
        std::fwrite(buffer, 1, *n, stdout);
        std::fflush(stdout);
    }
}

// Standard input may be a file, a pipe or a terminal: io::read() waits for any of them.
void send_input(ums::net::stream& server) {
    char buffer[4096];
    for (;;) {
        const auto n = ums::io::read(0, buffer, sizeof buffer);
        if (!n || *n == 0 || !server.write_all(buffer, *n)) return;
    }
}

void echo(ums::net::stream peer) {
    char buffer[4096];
    for (;;) {
        const auto n = peer.read(buffer, sizeof buffer);
        if (!n || *n == 0 || !peer.write_all(buffer, *n)) return;
    }
}

int talk(const char* address) {
    const auto at = ums::net::endpoint::parse(address);
    if (!at) {
        std::cerr << "echo_client: " << address
                  << ": expected ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH\n";
        return 2;
    }
    auto server = ums::net::stream::connect(*at, ums::deadline_after(std::chrono::seconds{10}));
    if (!server) {
        std::cerr << "echo_client: " << address << ": " << server.error().message() << '\n';
        return 1;
    }
    ums::fiber printer{print_all, std::ref(*server)};
    send_input(*server);
    server->shutdown(SHUT_WR);  // The server sees the end and hangs up.
    printer.join();
    return 0;
}

int demo() {
    auto [here, there] = ums::net::stream::pair().value();
    ums::fiber peer{echo, std::move(there)};
    ums::fiber printer{print_all, std::ref(here)};
    here.write_all("one\ntwo\n").value();
    here.shutdown(SHUT_WR);
    printer.join();
    peer.join();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2) {
        std::cerr << "usage: echo_client [ADDRESS:PORT | unix:PATH]\n";
        return 2;
    }
    return ums::run([=] { return argc == 2 ? talk(argv[1]) : demo(); });
}
