// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/run/verdict.hpp: whether a program would gain from fibers, by what was counted.
//
// All rules and numbers are here. docs/porting.md explains them, and has the table of programs that
// they were measured with.

#include <array>
#include <cstddef>
#include <string>

#include "looks.hpp"
#include "program.hpp"

namespace tool::running {

struct counts {
    usage used;
    shares kinds{};
    double switch_s = 0;              // What a wait costs on this machine.
    double ready = 0, any_ready = 0;  // As looks has them, with
    double runs = 0;                  // how many times its threads were given a CPU.
    std::size_t most_threads = 0;
    int looks = 0;
    bool is_refused = false, has_cxx = false;
    bool is_enough = false;  // As looks has it.

    [[nodiscard]] double cpu_s() const { return used.user_s + used.system_s; }
    // How many times its threads have waited.
    [[nodiscard]] double voluntary() const;
    // The share of its CPU time that these waits' switches take.
    [[nodiscard]] double in_switches() const;
};

struct verdict {
    // The shares of its CPU time that fibers would save.
    double synchronisation = 0, sockets = 0;
    bool gains = false;
    // What it gains by: synchronisation, sockets, both or nothing; or unknown.
    std::string by;
    // Three sentences: whether, by what or why not, and which way.
    std::array<std::string, 3> lines;
};

[[nodiscard]] verdict judge(const counts& all);

}  // namespace tool::running
