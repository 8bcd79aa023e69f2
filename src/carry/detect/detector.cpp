// SPDX-License-Identifier: MIT
#include "carry/detect/detector.hpp"

#include <system_error>

#include "carry/detect/monitor_detector.hpp"
#include "carry/detect/no_detector.hpp"
#include "os/say.hpp"

namespace ums::carry {

namespace {

constexpr const char* asked_for = "asked for";
constexpr const char* best = "the best there is";

[[noreturn]] void refuse(const char* name, const std::string& problem) {
    throw std::system_error{std::make_error_code(std::errc::operation_not_supported),
                            std::string{"ums: block detection by "} + name + ": " + problem};
}

std::string monitor_problem() {
    const long error = os::thread_states{}.open();
    return error == 0 ? std::string{} : "/proc/self/task cannot be read";
}

}  // namespace

const char* name_of(detector_kind kind) noexcept {
    switch (kind) {
        case detector_kind::monitor:
            return "monitor";
        case detector_kind::none:
            break;
    }
    return "off";
}

namespace {

std::string problem_of_start(detector& d) {
    try {
        return d.start();
    } catch (const std::system_error& e) {  // No kernel thread.
        return e.what();
    }
}

}  // namespace

chosen_detector choose(preference wanted) {
    if (wanted == preference::off) return {std::make_unique<no_detector>(), asked_for};
    auto monitor = std::make_unique<monitor_detector>();
    std::string problem = problem_of_start(*monitor);
    if (problem.empty())
        return {std::move(monitor), wanted == preference::monitor ? asked_for : best};
    if (wanted == preference::monitor) refuse("monitor", problem);
    os::say(
        "no way to find fibers that block in the kernel (%s): one that does stops its processor; "
        "see ums::blocking(), and UMS_BLOCK=off to be told no more",
        problem.c_str());
    return {std::make_unique<no_detector>(), std::move(problem)};
}

verdict would_choose(preference wanted) {
    if (wanted == preference::off) return {detector_kind::none, asked_for, true};
    std::string problem = monitor_problem();
    if (problem.empty())
        return {detector_kind::monitor, wanted == preference::monitor ? asked_for : best, true};
    if (wanted == preference::monitor) return {detector_kind::monitor, std::move(problem), false};
    return {detector_kind::none, std::move(problem), true};
}

}  // namespace ums::carry
