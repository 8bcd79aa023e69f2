// SPDX-License-Identifier: MIT

// jobs: fibers of Boost.Fiber.

#include "../common/on_boost.hpp"
#include "jobs.hpp"

int main(int argc, char** argv) { return bench::run_jobs_peer<bench::on_boost>(argc, argv); }
