// SPDX-License-Identifier: MIT
#include "process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "core_file.hpp"
#include "live_process.hpp"

namespace tool::inspect {

std::unique_ptr<process> open_process(const std::string& target, bool stop) {
    const bool is_number = !target.empty() && std::all_of(target.begin(), target.end(), [](char c) {
        return c >= '0' && c <= '9';
    });
    if (!is_number) return std::make_unique<core_file>(target);
    return std::make_unique<live_process>(number_of(target), stop);
}

int number_of(const std::string& digits) {
    assert(!digits.empty() && digits.find_first_not_of("0123456789") == digits.npos &&
           "a process's number has something else than digits");
    if (digits.size() > 9) throw std::runtime_error{fmt::format("there is no process {}", digits)};
    return std::stoi(digits);
}

void let_go(process& of) {
    if (const std::int64_t ns = of.let_go(); ns != 0)
        fmt::print(stderr, "process {} stood still for {:.1f} ms\n", of.pid(),
                   static_cast<double>(ns) / 1e6);
}

}  // namespace tool::inspect
