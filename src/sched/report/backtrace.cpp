// SPDX-License-Identifier: MIT
#include "sched/report/backtrace.hpp"

#include "arch/backtrace.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/run/park.hpp"

namespace ums::sched {

std::vector<const void*> backtrace(fiber& f) {
    constexpr std::size_t most = 64;
    const void* addresses[most];
    const std::uint32_t bit = take_aside(f);
    if (bit == 0) return {};
    const std::size_t n = arch::backtrace(f.context, addresses, most);
    park_again(f, bit);
    return std::vector<const void*>(addresses, addresses + n);
}

}  // namespace ums::sched
