// SPDX-License-Identifier: MIT

// echo: the hand-written epoll loop.

#include "../common/epoll_server.hpp"

namespace {

struct session {
    static void answer(std::string_view received, std::string& out) { out += received; }
};

}  // namespace

int main() {
    return bench::run_server([] { bench::epoll_server<session>{}.run(); });
}
