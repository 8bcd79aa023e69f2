// SPDX-License-Identifier: MIT
#pragma once

// bench/servers/watched_process.hpp: what another process has used: the CPU time of all its
// threads, including those that have ended, and its resident memory.

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

#include "../common/clock.hpp"

namespace bench {

class watched_process {
public:
    explicit watched_process(std::uint64_t pid)
        : statm_{"/proc/" + std::to_string(pid) + "/statm"} {
        if (clock_getcpuclockid(static_cast<pid_t>(pid), &clock_) != 0)
            throw std::runtime_error{"no process has the id " + std::to_string(pid)};
    }

    std::uint64_t cpu_ns() const noexcept { return read_ns(clock_); }

    std::uint64_t resident_bytes() const {
        std::ifstream file{statm_};
        std::uint64_t size = 0;
        std::uint64_t resident = 0;
        if (!(file >> size >> resident)) throw std::runtime_error{"cannot read " + statm_};
        return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    }

private:
    std::string statm_;
    clockid_t clock_{};
};

}  // namespace bench
