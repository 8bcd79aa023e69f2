// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/descriptors.hpp: what the descriptors of a live process are: the two ends of a
// socket, the path of a file.

#include <cstdint>
#include <string>
#include <unordered_map>

namespace tool::inspect {

class descriptors {
public:
    // Without a process: every answer is empty.
    descriptors() = default;
    explicit descriptors(int pid) : pid_{pid} {}

    // "tcp 10.0.0.7:51234 at 10.0.0.1:80" (the peer first), "pipe", a path; empty: not known.
    [[nodiscard]] const std::string& describe(std::uint64_t fd);

private:
    [[nodiscard]] std::string look_up(std::uint64_t fd);
    void load();
    void load_internet(const char* file, const char* protocol);
    void load_unix();

    int pid_ = 0;
    bool is_loaded_ = false;
    std::unordered_map<std::uint64_t, std::string> known_;    // By number.
    std::unordered_map<std::uint64_t, std::string> sockets_;  // By inode.
};

}  // namespace tool::inspect
