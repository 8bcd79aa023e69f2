// SPDX-License-Identifier: MIT
#include "os/thread/thread_state.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <set>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "internal/failing_calls.hpp"
#include "support/conservation.hpp"
#include "support/no_descriptors.hpp"

namespace {

using ums::os::failing_calls;
using ums::os::thread_states;
using kind = thread_states::kind;

std::set<int> open_numbers() {
    std::set<int> all;
    for (int fd = 0; fd < 256; ++fd)
        if (::fcntl(fd, F_GETFD) >= 0) all.insert(fd);
    return all;
}

TEST(thread_state, reads_what_the_kernel_writes) {
    EXPECT_EQ(thread_states::parse_syscall("running\n").what, kind::running);
    const auto call =
        thread_states::parse_syscall("202 0x7f 0x80 0x0 0x0 0x0 0xffffffff 0x7f 0x7f\n");
    EXPECT_EQ(call.what, kind::in_call);
    EXPECT_EQ(call.call, 202);
    EXPECT_EQ(thread_states::parse_syscall("0 0x3 0x7f").call, 0);
    EXPECT_EQ(thread_states::parse_syscall("-1 0x7ffd 0x4011").what, kind::in_fault);
    for (const char* bad : {"", "\n", "sleeping"})
        EXPECT_EQ(thread_states::parse_syscall(bad).what, kind::unknown) << bad;

    EXPECT_EQ(thread_states::parse_stat("12 (a) R 1 2").what, kind::running);
    EXPECT_EQ(thread_states::parse_stat("12 (a) S 1 2").what, kind::waiting);
    EXPECT_EQ(thread_states::parse_stat("12 (a) R) D 1 2").what, kind::waiting);
    for (const char* bad : {"", "12", "12 (a)", "12 (a) Z 1", "12 (a) T 1"})
        EXPECT_EQ(thread_states::parse_stat(bad).what, kind::unknown) << bad;
}

// A thread that waits in a read until the test lets it go.
class reader {
public:
    reader() {
        EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
        thread_ = std::thread{[this] {
            tid_ = static_cast<int>(::syscall(SYS_gettid));
            tid_.notify_all();
            char byte;
            while (::syscall(SYS_read, ends_[0], &byte, 1) != 1) {
            }
        }};
        tid_.wait(0);
    }
    ~reader() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    reader(const reader&) = delete;
    reader& operator=(const reader&) = delete;

    [[nodiscard]] int tid() const noexcept { return tid_; }
    void wait_blocked(thread_states& states) const {
        for (;;) {
            const auto seen = states.look(tid_);
            if (seen.what == kind::in_call && seen.call == SYS_read) return;
            std::this_thread::yield();
        }
    }
    void end() {
        EXPECT_EQ(::write(ends_[1], "x", 1), 1);
        thread_.join();
    }

private:
    int ends_[2];
    std::atomic<int> tid_{0};
    std::thread thread_;
};

class thread_state_test : public conserving_test {};

TEST_F(thread_state_test, tells_running_from_waiting) {
    thread_states states;
    ASSERT_EQ(states.open(), 0);
    reader r;
    r.wait_blocked(states);
    {
        failing_calls failing;
        failing.fail(failing_calls::open_at, 1, 1, ENOENT);
        EXPECT_EQ(states.look(r.tid()).what, kind::waiting);  // This look used stat.
    }
    r.end();
    // The kernel drops an ended thread a moment after its join.
    while (states.look(r.tid()).what != kind::unknown) std::this_thread::yield();
}

TEST_F(thread_state_test, looks_while_the_process_has_no_descriptor_left) {
    thread_states states;
    ASSERT_EQ(states.open(), 0);
    reader r;
    r.wait_blocked(states);
    const no_descriptors here;
    for (int i = 0; i < 10; ++i) EXPECT_EQ(states.look(r.tid()).what, kind::in_call);
    EXPECT_EQ(::dup(0), -1) << "a look has given its reserve away";
    // First without the reserve, and then with it again.
    failing_calls failing;
    failing.fail(failing_calls::open_at, 1, 2, EMFILE);
    EXPECT_EQ(states.look(r.tid()).what, kind::unknown);
    EXPECT_EQ(states.look(r.tid()).what, kind::in_call);
    r.end();
}

TEST_F(thread_state_test, looks_after_a_chroot) {
    if (::geteuid() != 0) GTEST_SKIP() << "chroot() is for root";
    EXPECT_EXIT(
        {
            thread_states states;
            if (states.open() != 0) std::_Exit(1);
            if (::chroot("/proc/self/fd") != 0) std::_Exit(77);
            const int self = static_cast<int>(::syscall(SYS_gettid));
            std::_Exit(states.look(self).what == kind::unknown ? 2 : 0);
        },
        ::testing::ExitedWithCode(0), "");
}

TEST_F(thread_state_test, says_why_it_cannot_look) {
    failing_calls failing;
    failing.fail(failing_calls::open_to_read, 1, 1, ENOENT);
    thread_states states;
    EXPECT_EQ(states.open(), -ENOENT);
    failing.fail(failing_calls::open_at, 1, 1, EACCES);
    EXPECT_EQ(states.open(), -EACCES);
}

// A program closes descriptors that it does not know, and gets their numbers for its own files.
TEST(thread_state, a_folder_that_the_program_closed_is_opened_again) {
    const std::set<int> before = open_numbers();
    thread_states states;
    ASSERT_EQ(states.open(), 0);
    std::vector<int> own;
    for (const int fd : open_numbers())
        if (!before.contains(fd)) own.push_back(fd);
    ASSERT_EQ(own.size(), 2U);
    const int self = static_cast<int>(::syscall(SYS_gettid));
    for (const char* path : {"/dev/null", "/tmp"}) {
        const int file = ::open(path, O_RDONLY | O_CLOEXEC);
        for (const int fd : own) ASSERT_EQ(::dup3(file, fd, O_CLOEXEC), fd);
        EXPECT_NE(states.look(self).what, kind::unknown) << path;
        ::close(file);
    }
    states.close();
    for (const int fd : own) {
        EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC) << "it is the program's";
        ::close(fd);
    }
    EXPECT_EQ(open_numbers(), before);
}

}  // namespace
