// SPDX-License-Identifier: MIT
//
// Programs that confine themselves after the runtime has started.
#include <cerrno>
#include <chrono>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "support/child.hpp"
#include "support/refused_call.hpp"
#include "support/scale.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;
using namespace std::chrono_literals;

constexpr int no_filters = 77;

// Processors that steal, become idle and are woken, and a fiber that blocks.
void use_everything() {
    mutex lock;
    int count = 0;
    std::vector<fiber> all;
    for (int i = 0; i < 100; ++i)
        all.emplace_back([&] {
            for (int n = 0; n < 20; ++n) {
                this_fiber::yield();
                const std::lock_guard hold{lock};
                ++count;
            }
            this_fiber::sleep_for(1ms);
        });
    for (fiber& f : all) f.join();
    if (count != 2000) std::abort();
}

const child_program confines_itself{"confines_itself", [](const child_arguments& a) {
                                        return run({.processors = 2}, [&a] {
                                            use_everything();
                                            const auto call =
                                                static_cast<unsigned>(std::stoul(a.at(0)));
                                            if (!refuse_call(call, EPERM)) return no_filters;
                                            use_everything();
                                            return 0;
                                        });
                                    }};

TEST(sandbox_test, a_program_that_refuses_membarrier_later_goes_on) {
    const child_end end = run_child("confines_itself", {std::to_string(SYS_membarrier)});
    if (end.code == no_filters) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "");
}

// Fibers that block in calls, while others want their processors.
void block_in_calls() {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    std::vector<fiber> all;
    for (int i = 0; i < 20; ++i)
        all.emplace_back([&] {
            char byte;
            if (::read(ends[0], &byte, 1) != 1) std::abort();
        });
    // Only if processors move on does this run.
    fiber{[&] {
        for (int i = 0; i < 20; ++i) {
            this_fiber::yield();
            if (::write(ends[1], "x", 1) != 1) std::abort();
        }
    }}.join();
    for (fiber& f : all) f.join();
    ::close(ends[0]);
    ::close(ends[1]);
}

const child_program blocks_confined{"blocks_confined", [](const child_arguments& a) {
                                        return run({.processors = 2}, [&a] {
                                            const auto call =
                                                static_cast<unsigned>(std::stoul(a.at(0)));
                                            if (!refuse_call(call, EPERM)) return no_filters;
                                            block_in_calls();
                                            return 0;
                                        });
                                    }};

child_end confined(long call) { return run_child("blocks_confined", {std::to_string(call)}); }

TEST(sandbox_test, a_program_that_refuses_mprotect_or_pread_later_goes_on) {
    if (never_stops) GTEST_SKIP() << "a sanitizer's runtime makes such calls, too";
    for (const long call : {SYS_mprotect, SYS_pread64}) {
        const child_end end = confined(call);
        if (end.code == no_filters) GTEST_SKIP() << "no seccomp filters here";
        EXPECT_EQ(end.code, 0) << end;
        EXPECT_EQ(end.err, "");
    }
}

// Then blocks are found late.
TEST(sandbox_test, a_program_that_refuses_openat_later_is_told_once) {
    if (never_stops) GTEST_SKIP() << "there is no other way to find them under a sanitizer";
    const child_end end = confined(SYS_openat);
    if (end.code == no_filters) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err_lines(), 1u) << end;
    EXPECT_NE(end.err.find("openat, read: Operation not permitted"), end.err.npos) << end;
}

}  // namespace
