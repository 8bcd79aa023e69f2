// SPDX-License-Identifier: MIT

// blocking: kernel threads, which the kernel schedules wherever they block.

#include "../common/on_threads.hpp"
#include "../common/peer.hpp"
#include "office.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::office_plan_of(in);
        in.done();
        bench::office<bench::on_threads> all{plan};
        all.run(out, [](auto block) { block(); });
    });
}
