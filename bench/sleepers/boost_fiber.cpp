// SPDX-License-Identifier: MIT

// sleepers: fibers of Boost.Fiber.

#include "../common/on_boost.hpp"
#include "night.hpp"

int main(int argc, char** argv) {
    return bench::run_sleepers_peer<bench::on_boost>(argc, argv, 100'000);
}
