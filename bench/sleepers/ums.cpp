// SPDX-License-Identifier: MIT

// sleepers: fibers of libums.

#include "../common/on_ums.hpp"
#include "night.hpp"

int main(int argc, char** argv) {
    return bench::run_sleepers_peer<bench::on_ums>(argc, argv, 1'000'000);
}
