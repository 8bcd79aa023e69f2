// SPDX-License-Identifier: MIT
#include "sched/record/describe.hpp"

#include <cstdio>

#include "sched/run/here.hpp"

namespace ums::sched {

void describe(const fiber& f, char* buffer, unsigned long size) noexcept {
    const auto id = static_cast<unsigned long>(f.id.get());
    if (f.name[0] != 0)
        std::snprintf(buffer, size, "fiber %lu \"%s\"", id, f.name);
    else
        std::snprintf(buffer, size, "fiber %lu", id);
}

void describe_caller(char* buffer, unsigned long size) noexcept {
    const here at;
    if (at.self != nullptr)
        describe(*at.self, buffer, size);
    else
        std::snprintf(buffer, size, at.on != nullptr ? "a carrier's loop" : "a plain thread");
}

}  // namespace ums::sched
