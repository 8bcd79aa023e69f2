// SPDX-License-Identifier: MIT
#pragma once

// support/no_detection.hpp: for tests of the UMS API that count exactly what a scheduler is told:
// no detector looks for blocking that was not announced. A page fault that waits for another
// thread's is such blocking, and on a busy machine one is found now and then. UMS_BLOCK in the
// environment takes precedence, so the same tests also run with each detector; where the kernel
// refuses the one that is asked for, they are skipped.

#include <cerrno>
#include <cstdlib>

#include <gtest/gtest.h>

#include "ums/ums_scheduling.h"

class detector_that_is_asked_for : public ::testing::Environment {
public:
    void SetUp() override {
        ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
        if (ums_completion_list_create(&options.list) != 0) return;
        options.procedure = [](ums_reason_t, std::uintptr_t, void*) {};
        // The scheduler has nothing to run, so it returns at once.
        const int failed = ums_scheduler_enter(&options);
        EXPECT_EQ(ums_completion_list_destroy(options.list), 0);
        if (failed == -EOPNOTSUPP)
            GTEST_SKIP() << "not possible here: " << std::getenv("UMS_BLOCK");
        EXPECT_EQ(failed, 0);
    }
};

inline const bool no_detection =
    (::setenv("UMS_BLOCK", "off", 0),
     ::testing::AddGlobalTestEnvironment(new detector_that_is_asked_for) != nullptr);
