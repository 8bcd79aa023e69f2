// SPDX-License-Identifier: MIT

// jobs: fibers of libums, under the policy that is asked for.

#include "../common/on_ums.hpp"
#include "jobs.hpp"

int main(int argc, char** argv) { return bench::run_jobs_peer<bench::on_ums>(argc, argv); }
