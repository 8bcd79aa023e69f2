// SPDX-License-Identifier: MIT
#include "workers/worker/availability.hpp"

#include <cerrno>
#include <cstdio>
#include <sys/auxv.h>

#include "arch/sanitizer.hpp"
#include "arch/x86_64/thread_pointer.hpp"
#include "base/atomic.hpp"
#include "os/system.hpp"

namespace ums::scheduling {

namespace {

constinit base::atomic<bool> has_said{false};

// ums_scheduling_mode() returns the whole text, what_is_missing() what follows the first word.
constexpr char unavailable[] = "unavailable: ";
constexpr const char* available = "fsgsbase: in user mode, by WRFSBASE";
constexpr const char* no_fsgsbase =
    "unavailable: no FSGSBASE: the UMS API needs a CPU with it, and Linux 5.9 or later";
constexpr const char* no_valgrind = "unavailable: no FSGSBASE: Valgrind does not know WRFSBASE";

}  // namespace

const char* what_is_missing() noexcept {
    const char* said = describe_switching();
    return said == available ? nullptr : said + sizeof unavailable - 1;
}

int require_switching() noexcept {
    const char* missing = what_is_missing();
    if (missing == nullptr) [[likely]]
        return 0;
    // relaxed: the flag only keeps other threads from printing the message again.
    if (!has_said.exchange(true, base::relaxed)) std::fprintf(stderr, "ums: %s\n", missing);
    return -EOPNOTSUPP;
}

const char* describe_switching() noexcept {
    if (arch::under_valgrind()) return no_valgrind;
    const bool can = arch::can_write_thread_pointer(os::system.auxiliary_value(AT_HWCAP2));
    return can ? available : no_fsgsbase;
}

}  // namespace ums::scheduling
