// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/run/program.hpp: a program that the command starts, and that knows nothing of it.
//
// Signals from the terminal reach both. The command outlives SIGINT, SIGTERM and SIGHUP, and passes
// on those that a process sends to it alone.

#include <string>
#include <vector>

namespace tool::running {

// What the kernel counted until the end.
struct usage {
    double seconds = 0;  // From the start to the end.
    double user_s = 0, system_s = 0;
    double children_s = 0;   // The CPU time of children that it has waited for.
    double voluntary = 0;    // Switches because a thread waited, those children's included,
    double involuntary = 0;  // and because another took the CPU, or the thread yielded.
};

class program {
public:
    // Searches $PATH. Throws std::runtime_error with one line if it cannot be started.
    explicit program(const std::vector<std::string>& command);
    ~program();
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    [[nodiscard]] int pid() const { return pid_; }
    // Waits for its end, but not for longer. Returns whether it has ended.
    [[nodiscard]] bool wait_for(double seconds);
    // Call once, after its end.
    usage collect();
    // Call after collect(): ends the command as the program ended, or returns its exit code.
    [[nodiscard]] int end_alike() const;

private:
    int pid_ = -1;
    int handle_ = -1;  // A pidfd.
    int status_ = -1;
    double started_ = 0;
};

}  // namespace tool::running
