// SPDX-License-Identifier: MIT

// lone: workers of the UMS API. They wait in the system calls of any thread, and the library tells
// their scheduler, which executes another.

#include "../common/on_workers.hpp"
#include "threads.hpp"

namespace {

struct runtime : lone::plain_calls<runtime> {
    template <class Body>
    static void go(Body body) {
        bench::on_workers::runner{std::move(body)};  // Lives as long as the peer.
    }
    // The body in the main thread, which makes the workers.
    template <class Body>
    static void run(std::uint64_t processors, Body body) {
        bench::on_workers::run(processors, std::move(body));
    }
};

}  // namespace

int main(int argc, char** argv) {
    return lone::run_lone_peer<runtime>(argc, argv, {"pipe", "unix", "tcp", "condvar", "echo"});
}
