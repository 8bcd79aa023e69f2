// SPDX-License-Identifier: MIT

// sleepers: kernel threads.

#include "../common/on_threads.hpp"
#include "night.hpp"

int main(int argc, char** argv) {
    return bench::run_sleepers_peer<bench::on_threads>(argc, argv, 10'000);
}
