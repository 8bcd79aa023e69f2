// SPDX-License-Identifier: MIT
#include "carry/detector.hpp"
#include "arch/sanitizer.hpp"

#include <system_error>

#include "carry/monitor_detector.hpp"
#include "carry/no_detector.hpp"
#include "carry/perf_detector.hpp"
#include "os/say.hpp"

namespace ums::carry {

namespace {

constexpr const char* asked_for = "asked for";
constexpr const char* best = "the best there is";

[[noreturn]] void refuse(const char* name, const std::string& problem) {
    throw std::system_error{std::make_error_code(std::errc::operation_not_supported),
                            std::string{"ums: block detection by "} + name + ": " + problem};
}

std::string perf_problem() {
    if (arch::under_valgrind()) return perf_detector::not_under_valgrind;
    const char* call = nullptr;
    const long error = os::try_switch_records(call);
    return error == 0 ? std::string{} : perf_detector::explain(call, error);
}

std::string monitor_problem() {
    const long error = os::thread_states{}.open();
    return error == 0 ? std::string{} : "/proc/self/task cannot be read";
}

}  // namespace

const char* name_of(detector_kind kind) noexcept {
    switch (kind) {
        case detector_kind::perf:
            return "perf";
        case detector_kind::monitor:
            return "monitor";
        case detector_kind::none:
            break;
    }
    return "off";
}

namespace {

std::string problem_of_start(detector& d, int root) {
    try {
        return d.start(root);
    } catch (const std::system_error& e) {  // No kernel thread.
        return e.what();
    }
}

}  // namespace

chosen_detector choose(preference wanted, int root) {
    if (wanted == preference::off) return {std::make_unique<no_detector>(), asked_for};
    std::string why = asked_for;
    if (wanted != preference::monitor) {
        auto perf = std::make_unique<perf_detector>();
        std::string problem = problem_of_start(*perf, root);
        if (problem.empty())
            return {std::move(perf), wanted == preference::perf ? asked_for : best};
        if (wanted == preference::perf) refuse("perf", problem);
        why = std::move(problem);
    }
    auto monitor = std::make_unique<monitor_detector>();
    const std::string problem = problem_of_start(*monitor, root);
    if (problem.empty()) return {std::move(monitor), std::move(why)};
    if (wanted == preference::monitor) refuse("monitor", problem);
    why += "; " + problem;
    os::say("no way to find fibers that block in the kernel (%s): one that does stops its processor; see "
            "ums::blocking(), and UMS_BLOCK=off to be told no more",
            why.c_str());
    return {std::make_unique<no_detector>(), std::move(why)};
}

verdict would_choose(preference wanted) {
    if (wanted == preference::off) return {detector_kind::none, asked_for, true};
    std::string why = asked_for;
    if (wanted != preference::monitor) {
        std::string problem = perf_problem();
        if (problem.empty())
            return {detector_kind::perf, wanted == preference::perf ? asked_for : best, true};
        if (wanted == preference::perf) return {detector_kind::perf, std::move(problem), false};
        why = std::move(problem);
    }
    const std::string problem = monitor_problem();
    if (problem.empty()) return {detector_kind::monitor, std::move(why), true};
    if (wanted == preference::monitor) return {detector_kind::monitor, problem, false};
    return {detector_kind::none, why + "; " + problem, true};
}

}  // namespace ums::carry
