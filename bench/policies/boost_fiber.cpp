// SPDX-License-Identifier: MIT

// policies: fibers of Boost.Fiber.

#include "../common/on_boost.hpp"
#include "shapes.hpp"

int main(int argc, char** argv) { return bench::run_policies_peer<bench::on_boost>(argc, argv); }
