// SPDX-License-Identifier: MIT

// preemption: fibers of Boost.Fiber, which are not preempted.

#include "../common/on_boost.hpp"
#include "../common/peer.hpp"
#include "loops.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::loops_plan_of(in);
        in.done();
        bench::measure_loops<bench::on_boost>(plan, out);
    });
}
