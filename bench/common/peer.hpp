// SPDX-License-Identifier: MIT
#pragma once

// bench/common/peer.hpp: the frame of every peer program.
//
// A peer prints exactly one line of JSON and exits with 0, or prints one line on stderr and exits
// with 1.

#include <cstdio>
#include <exception>

#include "cell.hpp"
#include "clock.hpp"
#include "line.hpp"

namespace bench {

template <class Body>
int run_peer(int argc, char** argv, Body body) {
    try {
        cell in{argc, argv};
        line out;
        body(in, out);
        out.print();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

}  // namespace bench
