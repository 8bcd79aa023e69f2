// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/started.hpp: a program that the tool starts, and whose memory can still be read
// when it ends.
//
// ptrace(2) seizes it, which halts nothing, and makes it stand still for a moment when it exits.

#include <cassert>
#include <string>
#include <vector>

namespace tool::tracing {

class started {
public:
    // Searches $PATH, and sets UMS_TRACE. Throws std::runtime_error with one line.
    started(const std::vector<std::string>& command, const std::string& variable);
    ~started();  // If the program has not ended, it runs on.
    started(const started&) = delete;
    started& operator=(const started&) = delete;

    [[nodiscard]] int pid() const { return pid_; }
    // Looks after the program, without waiting.
    enum class is { running, exiting, gone };
    [[nodiscard]] is look();
    // Call after `exiting`: lets it end.
    void let_go();
    // Call after `gone`: returns its exit code, or 128 + its signal.
    [[nodiscard]] int code() const {
        assert(is_gone_ && "a program has no exit code before it ends");
        return code_;
    }

private:
    int pid_ = -1;
    int code_ = 0;
    bool is_gone_ = false;
};

}  // namespace tool::tracing
