// SPDX-License-Identifier: MIT
#include "os/thread/slice.hpp"

#include <cstdint>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ums::os {

namespace {

// The kernel's struct sched_attr, first version; its header cannot be included beside <sched.h>.
struct attributes {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
};
static_assert(sizeof(attributes) == 48);

bool read(attributes& a) noexcept { return ::syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) == 0; }

bool is_fair(const attributes& a) noexcept {
    return a.policy == SCHED_OTHER || a.policy == SCHED_BATCH;
}

}  // namespace

bool ask_for_slice(nanoseconds length) noexcept {
    attributes a{};
    if (!read(a) || !is_fair(a)) return false;
    a.size = sizeof a;
    a.runtime = static_cast<std::uint64_t>(length);
    // An older kernel accepts the call but ignores the value.
    return ::syscall(SYS_sched_setattr, 0, &a, 0) == 0 && asked_slice() == length;
}

void forget_slice() noexcept {
    attributes a{};
    if (!read(a) || !is_fair(a)) return;
    a.size = sizeof a;
    a.runtime = 0;  // The kernel's own.
    ::syscall(SYS_sched_setattr, 0, &a, 0);
}

nanoseconds asked_slice() noexcept {
    attributes a{};
    return read(a) && is_fair(a) ? static_cast<nanoseconds>(a.runtime) : 0;
}

}  // namespace ums::os
