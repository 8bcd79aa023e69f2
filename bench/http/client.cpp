// SPDX-License-Identifier: MIT

// http: the load: the request that wrk sends. The length of a response differs from server to
// server, but not from one response to the next: the first one tells it.

#include "../servers/load.hpp"

namespace {

constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
constexpr std::string_view status = "HTTP/1.1 200 ";
constexpr std::string_view body = "Hello, World!";

class dialogue {
public:
    explicit dialogue(std::uint16_t port) {
        const int socket = bench::connect_to(port, 0, 0);
        bench::checked(static_cast<int>(send(socket, request.data(), request.size(), MSG_NOSIGNAL)),
                       "send");
        std::string got;
        while (!got.ends_with(body)) {
            char buffer[4096];
            const auto n = recv(socket, buffer, sizeof buffer, 0);
            bench::checked(static_cast<int>(n), "recv");
            if (n == 0) throw std::runtime_error{"the server closed the first connection"};
            got.append(buffer, static_cast<std::size_t>(n));
        }
        close(socket);
        bytes_ = got.size();
    }

    static void batch(std::uint64_t n, std::string& out) {
        while (n-- > 0) out += request;
    }
    std::size_t response_bytes() const { return bytes_; }
    static bool check(std::string_view first, std::string_view last) {
        const auto n = std::min(first.size(), status.size());
        return first.substr(0, n) == status.substr(0, n) &&
               (last.size() < body.size() || last.ends_with(body));
    }

private:
    std::size_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const bench::load_settings how{in};
        in.done();
        dialogue words{how.port};
        bench::load{how, words}.run(out);
    });
}
