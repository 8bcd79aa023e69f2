// SPDX-License-Identifier: MIT

// lone: kernel threads.

#include <thread>

#include "threads.hpp"

namespace {

struct runtime : lone::plain_calls<runtime> {
    template <class Body>
    static void go(Body body) {
        std::thread{std::move(body)}.detach();
    }
    template <class Body>
    static void run(std::uint64_t, Body body) {
        body();
    }
};

}  // namespace

int main(int argc, char** argv) { return lone::run_lone_peer<runtime>(argc, argv, lone::all_ways); }
