// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/progress.hpp: one line on stderr that says what runs and how long the rest will take.
// Silent unless stderr is a terminal.

#include <cstddef>
#include <string>

namespace tool {

class progress {
public:
    progress();
    ~progress() { clear(); }
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;

    // `left_s` is negative while nobody can know.
    void show(const std::string& bench, std::size_t done, std::size_t all, const std::string& what,
              double left_s);
    void clear();

private:
    bool is_terminal_;
    bool is_shown_ = false;
};

}  // namespace tool
