// SPDX-License-Identifier: MIT
#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cassert>
#include <cmath>
#include <cstdio>

namespace tool {

progress::progress() : is_terminal_{isatty(STDERR_FILENO) == 1} {}

void progress::show(step which, const std::string& bench, std::size_t done, std::size_t all,
                    const std::string& what, double left_s) {
    assert(done <= all && "more runs are done than there are");
    if (!is_terminal_) {
        const std::size_t quarter = all == 0 ? 0 : done * 4 / all;
        if (which == step::prepare || (bench == bench_ && quarter == quarter_)) return;
        bench_ = bench;
        quarter_ = quarter;
    }
    std::string text = fmt::format("[{} {}/{}] ", bench, done, all);
    if (left_s >= 0) {
        const auto seconds = static_cast<long>(std::ceil(left_s));
        text += fmt::format("{}:{:02} left, ", seconds / 60, seconds % 60);
    }
    text += what;
    if (!is_terminal_) {
        fmt::print(stderr, "{}\n", text);
        return;
    }
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
        text.size() >= size.ws_col)
        text.resize(size.ws_col - 1);
    fmt::print(stderr, "\r\033[K{}", text);
    std::fflush(stderr);
    is_shown_ = true;
}

void progress::clear() {
    if (!is_shown_) return;
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
    is_shown_ = false;
}

}  // namespace tool
