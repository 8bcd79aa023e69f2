// SPDX-License-Identifier: MIT
//
// Programs that confine themselves after the runtime has started.
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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

// Waits for descriptors of several kinds, and reads and writes a file. Returns 0, or which of these
// failed.
int use_descriptors() {
    int foreign[2], ours[2];
    if (::pipe(foreign) != 0 || !io::pipe(ours)) return 1;
    char c = 0;
    for (const auto* ends : {foreign, ours}) {
        fiber writer{[&] {
            this_fiber::yield();
            if (!io::write(ends[1], "x", 1)) io::close(ends[1]).value();
        }};
        const bool has_read = io::read(ends[0], &c, 1).value_or(0) == 1;
        writer.join();
        if (!has_read) return 2;
    }
    fiber writer{[&] {
        this_fiber::sleep_for(1ms);
        (void)!::write(foreign[1], "x", 1);
    }};
    pollfd both[2] = {{foreign[0], POLLIN, 0}, {ours[0], POLLIN, 0}};
    const bool is_ready = io::poll(both, 2).value_or(0) == 1;
    writer.join();
    if (!is_ready || !io::wait_readable(foreign[0])) return 3;
    io::close(foreign[0]).value();
    if (io::write(foreign[1], "x", 1).error() != std::errc::broken_pipe) return 4;
    const int file = ::memfd_create("file", MFD_CLOEXEC);
    iovec pieces[2] = {{&c, 1}, {&c, 1}};
    if (io::write(file, "abc", 3).value_or(0) != 3) return 5;
    if (io::pread(file, &c, 1, 2).value_or(0) != 1 || c != 'c') return 6;
    if (io::pwrite(file, "d", 1, 0).value_or(0) != 1) return 7;
    if (::lseek(file, 0, SEEK_SET) != 0 || io::readv(file, pieces, 2).value_or(0) != 2) return 8;
    ::close(file);
    for (const int fd : {foreign[1], ours[0], ours[1]}) io::close(fd).value();
    return 0;
}

const child_program waits_confined{
    "waits_confined", [](const child_arguments& a) {
        return run({.processors = 1}, [&a] {
            if (a.size() > 2) use_descriptors();
            if (!refuse_call(static_cast<unsigned>(std::stoul(a[0])),
                             static_cast<unsigned>(std::stoul(a[1]))))
                return no_filters;
            return use_descriptors();
        });
    }};

child_end wait_confined(long call, int error, bool later = false) {
    child_arguments a{std::to_string(call), std::to_string(error)};
    if (later) a.emplace_back("later");
    return run_child("waits_confined", a);
}

// An older container's profile knows no new calls, and a program's own only those that it makes.
TEST(sandbox_test, descriptors_are_used_without_calls_that_have_an_older_form) {
    if (never_stops) GTEST_SKIP() << "a sanitizer's runtime makes such calls, too";
    for (const long call : {SYS_epoll_pwait2, SYS_preadv2, SYS_pwritev2, SYS_ppoll, SYS_statx})
        for (const int error : {EPERM, ENOSYS}) {
            const child_end end = wait_confined(call, error);
            if (end.code == no_filters) GTEST_SKIP() << "no seccomp filters here";
            EXPECT_EQ(end.code, 0) << call << ", " << error << ": " << end;
            EXPECT_EQ(end.err, "") << call;
        }
}

TEST(sandbox_test, a_call_that_no_wait_can_do_without_is_named) {
    if (never_stops) GTEST_SKIP() << "a sanitizer's runtime makes such calls, too";
    const std::string line = "the kernel refuses a call that libums waits for descriptors with";
    for (const long call : {SYS_epoll_create1, SYS_eventfd2, SYS_epoll_ctl}) {
        const child_end end = wait_confined(call, EPERM);
        if (end.code == no_filters) GTEST_SKIP() << "no seccomp filters here";
        EXPECT_EQ(end.code, 2) << end;
        EXPECT_EQ(end.err_lines(), 1u) << end;
        EXPECT_NE(end.err.find(line), end.err.npos) << end;
    }
    const child_end end = wait_confined(SYS_epoll_pwait, EPERM, true);
    EXPECT_EQ(end.err.find("closed or replaced"), end.err.npos) << end;
    EXPECT_NE(end.err.find(line), end.err.npos) << end;
}

}  // namespace
