// SPDX-License-Identifier: MIT

// yield: fibers of libums.

#include "../common/on_ums.hpp"
#include "laps.hpp"

int main(int argc, char** argv) { return bench::run_yield_peer<bench::on_ums>(argc, argv); }
