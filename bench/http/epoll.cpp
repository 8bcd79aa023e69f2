// SPDX-License-Identifier: MIT

// http: the hand-written epoll loop.

#include "../common/epoll_server.hpp"
#include "request_ends.hpp"

namespace {

struct session {
    bench::request_ends ends;
    void answer(std::string_view received, std::string& out) {
        for (auto n = ends.count(received); n > 0; --n) out += bench::response;
    }
};

}  // namespace

int main() {
    return bench::run_server([] { bench::epoll_server<session>{}.run(); });
}
