// SPDX-License-Identifier: MIT

// forkjoin: no runtime and no task: what the programs themselves cost.

#include "measure.hpp"

namespace {

struct alone : bench::serial {
    static std::uint64_t stacks() { return 1; }
    template <class Body>
    static void run(std::uint64_t, Body body) {
        body();
    }
};

}  // namespace

int main(int argc, char** argv) { return bench::run_forkjoin_peer<alone>(argc, argv); }
