// SPDX-License-Identifier: MIT

// yield: fibers of Boost.Fiber.

#include "../common/on_boost.hpp"
#include "laps.hpp"

int main(int argc, char** argv) { return bench::run_yield_peer<bench::on_boost>(argc, argv); }
