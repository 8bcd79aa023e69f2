// SPDX-License-Identifier: MIT
#pragma once

// bench/common/process.hpp: what the kernel says this process occupies.

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace bench {

// A figure of /proc/self/status ("VmRSS", "VmPTE", "VmHWM"), in bytes.
inline std::uint64_t status_bytes(const std::string& key) {
    std::ifstream status{"/proc/self/status"};
    for (std::string text; std::getline(status, text);)
        if (text.starts_with(key + ":")) return std::stoull(text.substr(key.size() + 1)) * 1024U;
    throw std::runtime_error{"/proc/self/status has no " + key};
}

inline std::uint64_t maps_lines() {
    std::ifstream maps{"/proc/self/maps"};
    std::uint64_t lines = 0;
    for (std::string text; std::getline(maps, text);) ++lines;
    if (lines == 0) throw std::runtime_error{"/proc/self/maps cannot be read"};
    return lines;
}

}  // namespace bench
