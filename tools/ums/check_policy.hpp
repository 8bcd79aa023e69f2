// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/check_policy.hpp: `ums check-policy`: runs a policy through tests and names what it
// breaks.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace tool {

struct check_policy_request {
    std::string policy;  // A name, or the path of a shared object.
    std::uint64_t steps = 200'000;
    std::uint64_t seed = 1;
    unsigned seconds = 60;  // Without progress, for each test.
};

void add_check_policy(CLI::App& app, check_policy_request& asked);

// Returns the exit code: 0, or 1 if a test failed.
int check_policy(const check_policy_request& asked);

}  // namespace tool
