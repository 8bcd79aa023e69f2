// SPDX-License-Identifier: MIT
//
// The descriptors of libums's own: where they are, and what happens when the program closes them.

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <set>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/ums.hpp"

namespace {

using namespace std::chrono_literals;

// The numbers whose files have such a name in /proc/self/fd.
std::set<int> numbers_of(const char* what) {
    std::set<int> found;
    for (int fd = 0; fd < 256; ++fd) {
        std::array<char, 256> name{};
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        if (::readlink(link.c_str(), name.data(), name.size() - 1) > 0 &&
            std::string{name.data()}.find(what) != std::string::npos)
            found.insert(fd);
    }
    return found;
}

void wait_for_a_byte() {
    auto [here, there] = ums::net::stream::pair().value();
    ums::fiber writer{[&end = there] {
        ums::this_fiber::yield();
        end.write_all("x").value();
    }};
    char c;
    here.read_all(&c, 1).value();
    writer.join();
}

// Uses all that takes a descriptor: engine, detector, pool, signals.
int without_standard_streams(const child_arguments&) {
    const int report = ::fcntl(2, F_DUPFD_CLOEXEC, 100);
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    return ums::run({.processors = 2}, [report] {
        const ums::signal_events signals{SIGUSR1};
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return 1;  // 0 and 1.
        ums::fiber blocked{[&] {
            char c;
            (void)!::read(ends[0], &c, 1);
        }};
        for (int i = 0; i < 10; ++i) wait_for_a_byte();
        ums::io::close(ums::io::open("/dev/null", O_RDONLY).value()).value();
        (void)!::write(ends[1], "x", 1);
        blocked.join();
        for (const char* what : {"anon_inode", "/task"})
            for (const int fd : numbers_of(what))
                if (fd < 10) return ::dprintf(report, "%s is %d\n", what, fd), 1;
        return 0;
    });
}
const child_program streamless{"without standard streams", &without_standard_streams};

TEST(own_numbers, are_above_those_that_programs_give_a_meaning) {
    const child_end end = run_child("without standard streams");
    EXPECT_EQ(end.code, 0) << end;
}

int close_all(const child_arguments&) {
    ums::run({.processors = 1}, [] {
        wait_for_a_byte();
        ::close_range(3, ~0u, 0);
        for (;;) wait_for_a_byte();
    });
    return 0;
}
const child_program closer{"close all", &close_all};

TEST(own_numbers, that_the_program_closes_end_it_with_a_line) {
    if (under_asan || under_tsan) GTEST_SKIP() << "the sanitizer has descriptors of its own";
    const child_end end = run_child("close all");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_NE(end.err.find("the program has closed or replaced descriptor"), std::string::npos)
        << end;
}

class own_numbers_test : public conserving_test {};

TEST_F(own_numbers_test, of_signals_are_not_written_to_when_they_have_another_file) {
    if (under_tsan) GTEST_SKIP() << "ThreadSanitizer puts signals off";
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    const std::set<int> before = numbers_of("eventfd");
    int number = -1;
    {
        ums::signal_events events{SIGUSR1};
        for (const int fd : numbers_of("eventfd"))
            if (!before.contains(fd)) number = fd;
        ASSERT_GE(number, 10);
        ASSERT_EQ(::dup3(ends[1], number, O_CLOEXEC), number);
        ::raise(SIGUSR1);
        char c;
        EXPECT_EQ(::read(ends[0], &c, 1), -1);
        EXPECT_EQ(events.wait(ums::deadline_after(1ms)).value(), SIGUSR1);  // It was noted.
    }
    EXPECT_EQ(::fcntl(number, F_GETFD), FD_CLOEXEC) << "the program's file was closed";
    for (const int fd : {number, ends[0], ends[1]}) ::close(fd);
}

}  // namespace
