// SPDX-License-Identifier: MIT
#include "workers/scheduler/landing.hpp"

namespace ums::scheduling {

void land(landing& l) {
#if defined(UMS_ASAN) || defined(UMS_TSAN)
    if (_setjmp(l.frames) == 0) {
        auto* here = static_cast<landing*>(arch::switch_context(l.at, l.at, &l, nullptr).carrier);
        // Not _longjmp(): ThreadSanitizer does not see it.
        longjmp(here->frames, 1);
    }
    l.arrive(l.argument);
#else
    auto* here = static_cast<landing*>(arch::switch_context(l.at, l.at, &l, nullptr).carrier);
    here->arrive(here->argument);
#endif
    asm volatile("");  // No tail call: the frame stays for the next landing.
}

void land_again(landing& l) noexcept {
    arch::switch_context(l.discarded, l.at, &l, nullptr);
    __builtin_unreachable();
}

}  // namespace ums::scheduling
