// SPDX-License-Identifier: MIT
// variants: clang
// Workers by their Windows names that block in plain POSIX calls and in page faults, with each
// detector.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/conservation.hpp"
#include "support/gate.hpp"
#include "windows/queueing.hpp"

namespace {

class windows_unseen : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override { ::setenv("UMS_BLOCK", GetParam(), 1); }

private:
    const conservation nothing_left_;

protected:
    completion_list list;
    std::atomic<int> ends_{0};
    round_robin scheduler{list, ends_};
};

TEST_P(windows_unseen, the_scheduler_is_told_how_its_worker_blocks_and_gets_it_back) {
    for (const gate_kind& kind : gate_kinds()) {
        SCOPED_TRACE(kind.name);
        const auto closed = kind.make();
        worker w{list, [&]() -> DWORD {
                     SetLastError(5);
                     if (!closed->pass()) return static_cast<DWORD>(errno);
                     return GetLastError() == 5 ? 0 : 1;
                 }};
        struct told {
            gate& closed;
            int times = 0;
            bool in_fault = false;
        } t{*closed};
        scheduler.hook_data = &t;
        scheduler.hook = [](round_robin& s, UMS_SCHEDULER_REASON reason, ULONG_PTR payload,
                            PVOID given) {
            auto& seen = *static_cast<told*>(s.hook_data);
            if (reason != UmsSchedulerThreadBlocked || ++seen.times != 1) return false;
            EXPECT_EQ(given, nullptr);
            EXPECT_LE(payload, 1u);
            seen.in_fault = payload == 0;
            seen.closed.open();
            return false;
        };
        ends_ = 1;
        EXPECT_TRUE(scheduler.enter());
        EXPECT_EQ(t.times, 2);  // And the worker's end.
        EXPECT_EQ(t.in_fault, kind.name == "page fault");
        EXPECT_EQ(WaitForSingleObject(w.thread(), INFINITE), WAIT_OBJECT_0);
        EXPECT_EQ(w.exit_code(), 0u) << std::strerror(static_cast<int>(w.exit_code()));
    }
}

TEST_P(windows_unseen, another_worker_runs_while_one_sleeps_in_a_call_of_its_own) {
    std::atomic<bool> asleep = false, seen = false;
    worker sleeper{list, [&]() -> DWORD {
                       while (!seen) {
                           asleep = true;
                           const timespec time{0, 30'000'000};
                           if (::syscall(SYS_nanosleep, &time, nullptr) != 0) return 1;
                           asleep = false;
                       }
                       return 0;
                   }};
    worker other{list, [&]() -> DWORD {
                     while (!asleep) UmsThreadYield(nullptr);
                     seen = true;
                     return 0;
                 }};
    ends_ = 2;
    EXPECT_TRUE(scheduler.enter());
    EXPECT_EQ(WaitForSingleObject(sleeper.thread(), INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(sleeper.exit_code(), 0u);
    EXPECT_GE(scheduler.in_syscall, 3);
}

INSTANTIATE_TEST_SUITE_P(each_detector, windows_unseen, ::testing::Values("monitor"),
                         [](const auto& chosen) { return std::string{chosen.param}; });

}  // namespace
