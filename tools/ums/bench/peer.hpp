// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/peer.hpp: the measured programs: where they are, and one run of one.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cell.hpp"

namespace tool {

// The program that a runtime has for a workload: program_of("yield", "boost.fiber") is
// "yield-boost_fiber".
std::string program_of(std::string_view workload, std::string_view runtime);

// The path of a program: beside the command in a build tree, or in ../libexec/ums/bench if
// installed. Empty if it was not built.
std::string path_of(const std::string& program);

struct answer {
    std::map<std::string, double> figures;
    std::string error;  // One line; empty if all went well.
    double seconds = 0;
};

// Runs the peer once, confined to as many CPUs as the cell has processors.
answer run_peer(const cell& what, const std::vector<std::string>& more_args, double timeout_s);

}  // namespace tool
