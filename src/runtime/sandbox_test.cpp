// SPDX-License-Identifier: MIT
//
// Programs that confine themselves after the runtime has started.
#include <cerrno>
#include <chrono>
#include <sys/syscall.h>
#include <vector>

#include "support/child.hpp"
#include "support/refused_call.hpp"
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

}  // namespace
