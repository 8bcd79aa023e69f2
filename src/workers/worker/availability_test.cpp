// SPDX-License-Identifier: MIT
//
// Simulates a machine without FSGSBASE by a kernel that does not report it.

#include "workers/worker/availability.hpp"

#include <cerrno>
#include <string>
#include <sys/auxv.h>

#include <gtest/gtest.h>

#include "os/system.hpp"
#include "support/child.hpp"
#include "ums/compat/windows/windows.h"
#include "ums/ums_scheduling.h"

namespace {

constexpr const char* line = "no FSGSBASE: the UMS API needs a CPU with it, and Linux 5.9 or later";

intptr_t never_run(void*) { return 0; }

// Returns 0, or which check failed.
int use_the_api(const child_arguments&) {
    ums::os::system.auxiliary_value = [](unsigned long type) noexcept {
        return type == AT_HWCAP2 ? 0 : ums::os::kernel_calls.auxiliary_value(type);
    };
    if (ums_scheduling_mode() != std::string{"unavailable: "} + line) return 1;
    if (ums_scheduling_detector() != std::string{"off: "} + line) return 2;
    ums_scheduler_options_t scheduler = UMS_SCHEDULER_OPTIONS_INIT;
    if (ums_completion_list_create(&scheduler.list) != 0) return 3;
    scheduler.procedure = [](ums_reason_t, std::uintptr_t, void*) {};
    if (ums_scheduler_enter(&scheduler) != -ENOTSUP) return 4;
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.list = scheduler.list;
    ums_worker_t worker = 0;
    if (ums_worker_create(&worker, &options, &never_run, nullptr) != -ENOTSUP) return 5;
    UMS_SCHEDULER_STARTUP_INFO info = {};
    info.UmsVersion = UMS_VERSION;
    info.CompletionList = reinterpret_cast<PUMS_COMPLETION_LIST>(scheduler.list);
    info.SchedulerProc = [](UMS_SCHEDULER_REASON, ULONG_PTR, PVOID) {};
    if (EnterUmsSchedulingMode(&info) || GetLastError() != ERROR_NOT_SUPPORTED) return 6;
    // Calls that need no switch work; the list is not in use.
    return ums_completion_list_destroy(scheduler.list) == 0 ? 0 : 7;
}

const child_program without{"without", &use_the_api};

TEST(availability_test, without_fsgsbase_the_api_is_refused_and_one_line_says_why) {
    const child_end end = run_child("without");
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, std::string{"ums: "} + line + "\n");
}

TEST(availability_test, with_fsgsbase_nothing_is_missing) {
    EXPECT_EQ(ums::scheduling::what_is_missing(), nullptr);
    EXPECT_EQ(ums::scheduling::require_switching(), 0);
}

}  // namespace
