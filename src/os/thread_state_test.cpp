// SPDX-License-Identifier: MIT
#include "os/thread_state.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/failing_calls.hpp"

namespace {

using ums::os::failing_calls;
using ums::os::thread_state;
using kind = thread_state::kind;

TEST(thread_state, reads_what_the_kernel_writes) {
    EXPECT_EQ(thread_state::parse_syscall("running\n").what, kind::running);
    const auto call =
        thread_state::parse_syscall("202 0x7f 0x80 0x0 0x0 0x0 0xffffffff 0x7f 0x7f\n");
    EXPECT_EQ(call.what, kind::in_call);
    EXPECT_EQ(call.call, 202);
    EXPECT_EQ(thread_state::parse_syscall("0 0x3 0x7f").call, 0);
    EXPECT_EQ(thread_state::parse_syscall("-1 0x7ffd 0x4011").what, kind::in_fault);
    for (const char* bad : {"", "\n", "sleeping"})
        EXPECT_EQ(thread_state::parse_syscall(bad).what, kind::unknown) << bad;

    EXPECT_EQ(thread_state::parse_stat("12 (a) R 1 2").what, kind::running);
    EXPECT_EQ(thread_state::parse_stat("12 (a) S 1 2").what, kind::waiting);
    EXPECT_EQ(thread_state::parse_stat("12 (a) R) D 1 2").what, kind::waiting);
    for (const char* bad : {"", "12", "12 (a)", "12 (a) Z 1", "12 (a) T 1"})
        EXPECT_EQ(thread_state::parse_stat(bad).what, kind::unknown) << bad;
}

TEST(thread_state, tells_running_from_waiting) {
    EXPECT_EQ(thread_state::try_it(), 0);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::atomic<int> tid{0};
    std::thread reads{[&] {
        tid = static_cast<int>(::syscall(SYS_gettid));
        tid.notify_all();
        char byte;
        while (::syscall(SYS_read, ends[0], &byte, 1) != 1) {
        }
    }};
    tid.wait(0);
    {
        const thread_state state{tid};
        while (state.look().what != kind::in_call || state.look().call != SYS_read)
            std::this_thread::yield();
        failing_calls failing;
        failing.fail(failing_calls::open_to_read, 1, 1, ENOENT);
        const thread_state by_stat{tid};
        EXPECT_EQ(by_stat.look().what, kind::waiting);
        failing.fail(failing_calls::open_to_read, 1, 1, EMFILE);
        const thread_state without_fd{tid};
        EXPECT_EQ(without_fd.look().what, kind::in_call);
        failing.fail(failing_calls::open_to_read, 1);
        EXPECT_EQ(without_fd.look().what, kind::unknown);
    }
    const thread_state state{tid};
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    reads.join();
    // The kernel lets go of an ended thread a moment after its join.
    while (state.look().what != kind::unknown) std::this_thread::yield();
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace
