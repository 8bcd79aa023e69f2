// SPDX-License-Identifier: MIT
#include "carry/detect/detector.hpp"

#include <system_error>

#include "carry/detect/monitor_detector.hpp"
#include "ums/options.hpp"

namespace ums::carry {

chosen_detector choose(block_detection wanted) {
    if (wanted == block_detection::off) return {nullptr, "asked for"};
    auto monitor = std::make_unique<monitor_detector>();
    std::string problem;
    try {
        problem = monitor->start();
    } catch (const std::system_error& e) {  // No kernel thread.
        problem = e.what();
    }
    if (!problem.empty()) return {nullptr, std::move(problem)};
    return {std::move(monitor),
            wanted == block_detection::monitor ? "asked for" : "the best there is"};
}

}  // namespace ums::carry
