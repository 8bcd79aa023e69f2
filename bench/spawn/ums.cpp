// SPDX-License-Identifier: MIT

// spawn: fibers of libums.

#include "../common/on_ums.hpp"
#include "nursery.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::nursery_of<bench::on_ums>(in);
        const auto launch = in.word("launch", {"post", "dispatch"}) == "dispatch"
                                ? ums::launch::dispatch
                                : ums::launch::post;
        in.done();
        bench::measure_spawns<bench::on_ums>(
            plan, out, [launch] { return ums::fiber_options{.launch = launch}; });
    });
}
