// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/busy_loop.hpp: another program that keeps CPUs busy for as long as this
// object exists.
//
// There is one process for each CPU, confined to it, in an endless loop. The processes die with the
// command.

#include <sys/types.h>

#include <vector>

namespace tool {

class busy_loop {
public:
    // Throws std::system_error.
    explicit busy_loop(const std::vector<int>& cpus);
    ~busy_loop();
    busy_loop(const busy_loop&) = delete;
    busy_loop& operator=(const busy_loop&) = delete;

private:
    void end() noexcept;

    std::vector<pid_t> processes_;
};

}  // namespace tool
