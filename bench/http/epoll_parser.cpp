// SPDX-License-Identifier: MIT

// http: the hand-written epoll loop, with the parser and the answers of http-server
// (examples/http). The only difference from that server is that no fiber serves a connection.

#include "../common/epoll_server.hpp"
#include "session.hpp"

namespace {

http::site all;
http::output out;  // For the single thread.

struct session {
    http::session client{all};
    std::string rest;  // The rest of a request that is not complete.

    void answer(std::string_view received, std::string& to) {
        if (!rest.empty()) received = rest.append(received);
        for (bool goes_on = true; goes_on && !received.empty() && !client.is_over();) {
            const std::size_t taken = client.take(received, out);
            received.remove_prefix(taken);
            goes_on = taken != 0 || !out.empty();
            to += out.text;
            out.clear();
        }
        rest = std::string{received};
    }
};

}  // namespace

int main() {
    return bench::run_server([] { bench::epoll_server<session>{}.run(); });
}
