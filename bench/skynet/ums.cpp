// SPDX-License-Identifier: MIT

// skynet: fibers of libums.

#include "../common/on_ums.hpp"
#include "tree.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto leaves = in.number("fibers", 1'000'000);
        const bool post = in.word("launch", {"dispatch", "post"}) == "post";
        in.done();
        const ums::fiber_options how{.launch = post ? ums::launch::post : ums::launch::dispatch};
        bench::measure_skynet_of_joins<bench::on_ums>(processors, leaves, out, how);
    });
}
