// SPDX-License-Identifier: MIT
#pragma once

// bench/common/rally.hpp: the frame of peers in which two runners wake each other in turn. One
// operation is a round trip.

#include "peer.hpp"

namespace bench {

// rally() makes the other runner, and returns what was measured. read() reads what the cell asks of
// this peer alone.
template <class Runtime, class Rally, class Read>
int run_rally_peer(int argc, char** argv, Rally rally, Read read) {
    return run_peer(argc, argv, [&](cell& in, line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        in.number("fibers", 2, 2, 2);
        const auto min_ms = in.number("min_ms", 100, 0);
        Runtime::choose(in);
        read(in);
        in.done();

        tally sum;
        Runtime::run(processors, [&] { sum = repeat(min_ms, rally); });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}

template <class Runtime, class Rally>
int run_rally_peer(int argc, char** argv, Rally rally) {
    return run_rally_peer<Runtime>(argc, argv, rally, [](cell&) {});
}

}  // namespace bench
