// SPDX-License-Identifier: MIT

// policies: fibers of libums, under the policy that is asked for.

#include "../common/on_ums.hpp"
#include "shapes.hpp"

int main(int argc, char** argv) { return bench::run_policies_peer<bench::on_ums>(argc, argv); }
