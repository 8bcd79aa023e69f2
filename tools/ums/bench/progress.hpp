// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/progress.hpp: says on stderr what is running and how long the rest will take: on
// a terminal in one line that changes, elsewhere in a line for each quarter of a bench.

#include <cstddef>
#include <string>

namespace tool {

class progress {
public:
    progress();
    ~progress() { clear(); }
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;

    // A measurement, or what prepares one. `left_s` is negative while it is not known.
    enum class step { measure, prepare };
    void show(step which, const std::string& bench, std::size_t done, std::size_t all,
              const std::string& what, double left_s);
    void clear();

private:
    bool is_terminal_;
    bool is_shown_ = false;
    // What the last line was about, where there is no terminal.
    std::string bench_;
    std::size_t quarter_ = 0;
};

}  // namespace tool
