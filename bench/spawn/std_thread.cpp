// SPDX-License-Identifier: MIT

// spawn: kernel threads.

#include "../common/on_threads.hpp"
#include "nursery.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::nursery_of<bench::on_threads>(in);
        in.done();
        bench::measure_spawns<bench::on_threads>(plan, out);
    });
}
