// SPDX-License-Identifier: MIT

// blocking: fibers of Boost.Fiber. A fiber that blocks in the kernel blocks its kernel thread.

#include "../common/on_boost.hpp"
#include "../common/peer.hpp"
#include "office.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::office_plan_of(in);
        in.done();
        bench::office<bench::on_boost> all{plan};
        all.run(out, [](auto block) { block(); });
    });
}
