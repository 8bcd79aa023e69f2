// SPDX-License-Identifier: MIT

// skynet: kernel threads. The driver gives them fewer leaves than the other runtimes: all inner
// threads and the children they wait for exist at once.

#include "../common/on_threads.hpp"
#include "tree.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto leaves = in.number("fibers", 1000);
        in.done();
        bench::measure_skynet_of_joins<bench::on_threads>(processors, leaves, out);
    });
}
