// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/policy_trial.hpp: the tests of a policy.
//
// Each test makes policies, feeds them parked fibers as a cluster feeds them ready ones, and throws
// broken_rule with one sentence if a rule of docs/write-a-policy.md is broken. It may also crash or
// hang, so it runs in a process of its own.

#include <ums/policy.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <unistd.h>

namespace tool {

struct broken_rule : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct policy_subject {
    std::function<std::unique_ptr<ums::policy>()> make;
    std::uint64_t steps = 0;
    std::uint64_t seed = 0;
    unsigned seconds = 0;

    // A test that has come to this step gets `seconds` anew before SIGALRM ends it. So a busy
    // machine, on which a test takes long, is not mistaken for a policy that hangs.
    void reached(std::uint64_t step) const {
        if (step % 1024 == 0) alarm(seconds);
    }
};

struct policy_trial {
    const char* name;
    const char* hang;  // What it means if the test does not come to an end.
    void (*run)(const policy_subject&);
};

std::span<const policy_trial> policy_trials();

}  // namespace tool
