// SPDX-License-Identifier: MIT
//
// Which system calls an operation makes.

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <spawn.h>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "io/sigpipe.hpp"
#include "os/io_calls.hpp"
#include "os/no_stop.hpp"
#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "ums/ums.hpp"
#include "ums/ums_posix.h"

namespace {

using namespace ums;

class calls_test : public conserving_test {};

// While it exists, the calls of I/O are counted.
class counted_calls {
public:
    counted_calls() {
        for (auto& n : counts_) n = 0;
        os::io_system.call = [](long n, long a, long b, long c, long d, long e, long f) noexcept {
            ++counts_.at(static_cast<std::size_t>(n));
            return os::kernel_io.call(n, a, b, c, d, e, f);
        };
    }
    ~counted_calls() { os::io_system = os::kernel_io; }
    counted_calls(const counted_calls&) = delete;
    counted_calls& operator=(const counted_calls&) = delete;

    static int of(std::initializer_list<long> numbers) {
        int sum = 0;
        for (const long n : numbers) sum += counts_.at(static_cast<std::size_t>(n));
        return sum;
    }
    static int all() {
        int sum = 0;
        for (const auto& n : counts_) sum += n;
        return sum;
    }

private:
    static inline std::array<std::atomic<int>, 1024> counts_;
};

int of_the_engine(const counted_calls& calls) {
    return calls.of({SYS_epoll_pwait, SYS_epoll_pwait2});
}

// While it exists, the kernel looks older: pipes refuse RWF_NOWAIT, RWF_NOSIGNAL is not known.
class older_kernel {
public:
    older_kernel() {
        os::io_system.call = [](long n, long a, long b, long c, long d, long e, long f) noexcept {
            if ((n == SYS_preadv2 || n == SYS_pwritev2) && f != 0) return -long{EOPNOTSUPP};
            return os::kernel_io.call(n, a, b, c, d, e, f);
        };
    }
    ~older_kernel() {
        os::io_system = os::kernel_io;
        io::kernel_has_nosignal.store(true, base::relaxed);
    }
    older_kernel(const older_kernel&) = delete;
    older_kernel& operator=(const older_kernel&) = delete;
};

// A way from one descriptor to another.
struct way {
    std::string name;
    int in = -1, out = -1;
    bool is_ours = false, is_adopted = false;
};

std::vector<way> all_ways() {
    std::vector<way> made;
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    made.push_back({"a pipe from elsewhere", ends[0], ends[1]});
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    made.push_back({"a socket from elsewhere", ends[0], ends[1]});
    io::pipe(ends).value();
    made.push_back({"a pipe", ends[0], ends[1], true});
    io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
    made.push_back({"a socket", ends[0], ends[1], true});
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    made.push_back({"an adopted pipe", ends[0], ends[1], false, true});
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    made.push_back({"an adopted socket", ends[0], ends[1], false, true});
    for (const way& w : made)
        if (w.is_adopted)
            for (const int fd : {w.in, w.out}) io::adopt(fd).value();
    return made;
}

void close_all(const std::vector<way>& ways) {
    for (const way& w : ways)
        for (const int fd : {w.in, w.out}) io::close(fd).value();
}

// Before Linux 6.5 pipes have no RWF_NOWAIT, before 6.18 there is no RWF_NOSIGNAL.
bool kernel_is_new() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    char c = 'x';
    const iovec one{&c, 1};
    const bool is_new = ::syscall(SYS_pwritev2, ends[1], &one, 1, -1l, 0l, RWF_NOWAIT | 0x100) == 1;
    for (const int end : ends) ::close(end);
    return is_new;
}

void write_and_read(const way& w) {
    char c = 0;
    EXPECT_EQ(io::write(w.out, "x", 1).value(), 1u) << w.name;
    EXPECT_EQ(io::read(w.in, &c, 1).value(), 1u) << w.name;
    EXPECT_EQ(c, 'x') << w.name;
}

TEST_F(calls_test, an_operation_that_need_not_wait_makes_one) {
    if (!kernel_is_new()) GTEST_SKIP() << "needs Linux 6.18";
    on_a_fiber_and_on_a_thread([] {
        const std::vector<way> ways = all_ways();
        for (const way& w : ways) {
            write_and_read(w);
            const counted_calls calls;
            for (int i = 0; i < 10; ++i) write_and_read(w);
            EXPECT_EQ(calls.all(), 20) << w.name;
        }
        close_all(ways);
    });
}

// Two fibers on one processor send a byte to and fro.
TEST_F(calls_test, a_round_trip_makes_few) {
    if (!kernel_is_new()) GTEST_SKIP() << "needs Linux 6.18";
    run({.processors = 1, .block = block_detection::off}, [] {
        const std::vector<way> there = all_ways(), back = all_ways();
        for (std::size_t i = 0; i < there.size(); ++i) {
            constexpr int warm = 40, rounds = 100;  // Warm until there is a habit.
            int reads = 0, writes = 0, waits = 0, arms = 0, others = 0;
            fiber echo{[&] {
                char c;
                for (int n = 0; n < warm + rounds; ++n) {
                    io::read(there[i].in, &c, 1).value();
                    io::write(back[i].out, &c, 1).value();
                }
            }};
            char c = 'x';
            const auto round = [&] {
                io::write(there[i].out, &c, 1).value();
                io::read(back[i].in, &c, 1).value();
            };
            for (int n = 0; n < warm; ++n) round();
            {
                const counted_calls calls;
                for (int n = 0; n < rounds; ++n) round();
                reads = calls.of({SYS_read, SYS_preadv2, SYS_recvfrom, SYS_recvmsg});
                writes = calls.of({SYS_pwritev2, SYS_sendto});
                waits = of_the_engine(calls);
                arms = calls.of({SYS_epoll_ctl});
                others = calls.all() - reads - writes - waits - arms;
            }
            echo.join();
            const bool is_kept = there[i].is_ours || there[i].is_adopted;
            // By habit the two readers give way to each other, and neither waits. Each tries at
            // once one time in sixteen, and has the engine asked. A number from elsewhere has no
            // habits.
            EXPECT_LE(reads, is_kept ? 2 * rounds + rounds / 3 : 4 * rounds + 4) << there[i].name;
            EXPECT_LE(waits, is_kept ? rounds / 2 : 4 * rounds) << there[i].name;
            EXPECT_EQ(writes, 2 * rounds) << there[i].name;
            EXPECT_LE(arms, is_kept ? 0 : 2 * rounds + 2) << there[i].name;
            // After a wait for a number from elsewhere: whether it has another file by now.
            EXPECT_LE(others, is_kept ? 0 : 2 * rounds + 2) << there[i].name;
        }
        close_all(there);
        close_all(back);
    });
}

// The writer makes the reader ready, so that no processor has to ask the engine, whichever call
// moves the bytes.
TEST_F(calls_test, a_write_wakes_the_reader_at_the_other_end) {
    run({.processors = 1, .block = block_detection::off}, [] {
        const std::vector<way> ways = all_ways();
        int source[2];
        io::pipe(source).value();
        const int file = ::memfd_create("source", MFD_CLOEXEC);
        ASSERT_EQ(::pwrite(file, "abc", 3, 0), 3);
        char text[] = "abc";
        iovec pieces[2] = {{text, 1}, {text + 1, 2}};
        msghdr message{};
        message.msg_iov = pieces;
        message.msg_iovlen = 2;
        mmsghdr messages[1] = {{message, 0}};
        const auto splice = [&](const way& w) {
            io::write(source[1], text, 3).value();
            return io::splice(source[0], nullptr, w.out, nullptr, 3).value();
        };
        const auto sendfile = [&](const way& w) {
            off_t from = 0;
            return io::sendfile(w.out, file, &from, 3).value();
        };
        const std::vector<std::function<std::size_t(const way&)>> by_all = {
            [&](const way& w) { return io::write(w.out, text, 3).value(); },
            [&](const way& w) { return io::writev(w.out, pieces, 2).value(); },
            splice,
            sendfile,
        };
        const std::vector<std::function<std::size_t(const way&)>> by_sockets = {
            [&](const way& w) { return io::send(w.out, text, 3).value(); },
            [&](const way& w) { return io::sendmsg(w.out, &message).value(); },
            [&](const way& w) { return 3 * io::sendmmsg(w.out, messages, 1).value(); },
        };
        const auto expect_woken = [&](const way& w, const auto& write) {
            constexpr int rounds = 100;
            int waits = 0;
            for (int n = 0; n < rounds; ++n) {
                char buffer[100];
                fiber reader{[&] { EXPECT_EQ(io::read(w.in, buffer, 100).value(), 3u); }};
                this_fiber::yield();
                const counted_calls calls;
                EXPECT_EQ(write(w), 3u);
                reader.join();
                waits += of_the_engine(calls);
            }
            EXPECT_LE(waits, rounds / 10) << w.name;
        };
        for (const way& w : ways) {
            if (!w.is_ours) continue;
            for (const auto& write : by_all) expect_woken(w, write);
            if (w.name != "a socket") continue;
            for (const auto& write : by_sockets) expect_woken(w, write);
        }
        ::close(file);
        for (const int fd : source) io::close(fd).value();
        close_all(ways);
    });
}

// A server with little to do waits for each request by one call: nothing is asked before that wait
// or behind it.
TEST_F(calls_test, a_rare_event_takes_one_wait) {
    constexpr int warm = 40, rounds = 200;
    int there[2], back[2];
    ASSERT_EQ(::pipe2(there, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(back, O_CLOEXEC), 0);
    std::jthread client{[&] {
        for (int n = 0; n < warm + rounds; ++n) {
            char c = 'x';
            ASSERT_EQ(::write(there[1], &c, 1), 1);
            ASSERT_EQ(::read(back[0], &c, 1), 1);
        }
    }};
    run({.processors = 1, .block = block_detection::off}, [&] {
        io::adopt(there[0]).value();
        io::adopt(back[1]).value();
        char buffer[8];
        const auto serve = [&] {
            EXPECT_EQ(io::read(there[0], buffer, sizeof buffer).value(), 1u);
            EXPECT_EQ(io::write(back[1], buffer, 1).value(), 1u);
        };
        for (int n = 0; n < warm; ++n) serve();
        const counted_calls calls;
        for (int n = 0; n < rounds; ++n) serve();
        EXPECT_LE(of_the_engine(calls), rounds + rounds / 5);
    });
    client.join();
    for (const int fd : {there[0], back[1]}) io::close(fd).value();
    for (const int fd : {there[1], back[0]}) ::close(fd);
}

// Requires: another fiber reads and writes as often, from the other ends.
void go_round(const way& out, const way& in, int rounds, std::size_t bytes) {
    char text[64] = "x";
    for (int n = 0; n < rounds; ++n) {
        EXPECT_EQ(io::write(out.out, text, 1).value(), 1u);
        EXPECT_EQ(io::read(in.in, text, bytes).value(), 1u);
    }
}
void answer(const way& in, const way& out, int rounds, std::size_t bytes) {
    char text[64];
    for (int n = 0; n < rounds; ++n) {
        EXPECT_EQ(io::read(in.in, text, bytes).value(), 1u);
        EXPECT_EQ(io::write(out.out, text, 1).value(), 1u);
    }
}
// From now on both readers have mostly found nothing.
void make_a_habit(const way& there, const way& back) {
    constexpr int rounds = 40;
    fiber echo{[&] { answer(there, back, rounds, 1); }};
    go_round(there, back, rounds, 1);
    echo.join();
}

// A fiber that is always ready, and counts its turns.
class rival {
public:
    ~rival() {
        is_over_ = true;
        fiber_.join();
    }
    int turns = 0;

private:
    bool is_over_ = false;
    fiber fiber_{[this] {
        while (!is_over_) {
            ++turns;
            this_fiber::yield();
        }
    }};
};

// A reader that mostly found nothing runs the others first, but not for long once it finds what it
// wants, and not where a write has told it that there is something.
TEST_F(calls_test, a_reader_that_finds_something_again_no_longer_gives_way) {
    run({.processors = 1, .block = block_detection::off}, [] {
        const std::vector<way> there = all_ways(), back = all_ways();
        for (std::size_t i = 0; i < there.size(); ++i) {
            constexpr int rounds = 100;
            char c = 0;
            make_a_habit(there[i], back[i]);
            rival other;
            const std::string text(2 * rounds, 'y');
            EXPECT_EQ(io::write(back[i].out, text.data(), text.size()).value(), text.size());
            for (int n = 0; n < rounds; ++n) EXPECT_EQ(io::read(back[i].in, &c, 1).value(), 1u);
            EXPECT_LE(other.turns, 16) << there[i].name;
            other.turns = 0;
            for (int n = 0; n < rounds; ++n) EXPECT_EQ(io::read(back[i].in, &c, 1).value(), 1u);
            EXPECT_EQ(other.turns, 0) << there[i].name;
        }
        close_all(there);
        close_all(back);
    });
}

// Reads that ask for more than comes cost as much as if there had never been a habit.
TEST_F(calls_test, a_habit_ends_with_reads_of_another_kind) {
    run({.processors = 1, .block = block_detection::off}, [] {
        const std::vector<way> there = all_ways(), back = all_ways();
        for (std::size_t i = 0; i < there.size(); ++i) {
            const auto both_go_round = [&](int rounds, std::size_t bytes) {
                const counted_calls calls;
                fiber echo{[&] { answer(there[i], back[i], rounds, bytes); }};
                go_round(there[i], back[i], rounds, bytes);
                echo.join();
                return calls.all();
            };
            static_cast<void>(both_go_round(20, 64));
            const int before = both_go_round(100, 64);
            static_cast<void>(both_go_round(40, 1));
            static_cast<void>(both_go_round(20, 64));
            EXPECT_LE(both_go_round(100, 64), before + 10) << there[i].name;
        }
        close_all(there);
        close_all(back);
    });
}

// Nor does what is there make a fiber switch that may not: in a section, or because it must not
// wait.
TEST_F(calls_test, a_reader_gives_no_way_where_it_may_not_switch) {
    run({.processors = 1, .block = block_detection::off}, [] {
        const std::vector<way> there = all_ways(), back = all_ways();
        for (std::size_t i = 0; i < there.size(); ++i) {
            make_a_habit(there[i], back[i]);
            rival other;
            char text[20] = {};
            EXPECT_EQ(io::write(back[i].out, text, sizeof text).value(), sizeof text);
            other.turns = 0;
            for (std::size_t n = 0; n < sizeof text / 2; ++n) {
                uninterruptible([&] { EXPECT_EQ(io::read(back[i].in, text, 1).value(), 1u); });
                EXPECT_EQ(io::read(back[i].in, text, 1, deadline::min()).value(), 1u);
            }
            EXPECT_EQ(other.turns, 0) << there[i].name;
        }
        close_all(there);
        close_all(back);
    });
}

TEST_F(calls_test, an_older_kernel_makes_them_wait_and_never_block) {
    const older_kernel now;
    run({.processors = 1, .block = block_detection::off}, [] {
        const std::vector<way> ways = all_ways();
        for (const way& w : ways) {
            fiber writer{[&] {
                this_fiber::yield();
                for (int i = 0; i < 3; ++i) EXPECT_EQ(io::write(w.out, "x", 1).value(), 1u);
            }};
            char c;
            for (int i = 0; i < 3; ++i) EXPECT_EQ(io::read(w.in, &c, 1).value(), 1u) << w.name;
            writer.join();
            const iovec pieces[2] = {{&c, 1}, {&c, 1}};
            EXPECT_EQ(io::writev(w.out, pieces, 2).value(), 2u) << w.name;
            EXPECT_EQ(io::readv(w.in, pieces, 2).value(), 2u) << w.name;
            io::close(w.in).value();
            EXPECT_EQ(io::write(w.out, "x", 1).error(), std::errc::broken_pipe) << w.name;
            EXPECT_EQ(io::writev(w.out, pieces, 2).error(), std::errc::broken_pipe) << w.name;
            io::close(w.out).value();
        }
    });
}

// The signal mask of this thread as the kernel shows it.
std::string blocked_signals(const char* of) {
    std::string text;
    if (std::FILE* const status = std::fopen(of, "re")) {
        char line[256];
        while (std::fgets(line, sizeof line, status) != nullptr)
            if (std::string{line}.starts_with("SigBlk")) text = line;
        std::fclose(status);
    }
    return text;
}

// A reader that asks for more than there is does not try again before it waits.
TEST_F(calls_test, a_short_read_is_followed_by_a_wait) {
    run({.processors = 1, .block = block_detection::off}, [] {
        const std::vector<way> ways = all_ways();
        for (const way& w : ways) {
            if (!w.is_ours) continue;
            constexpr int rounds = 20;
            char buffer[100];
            const auto round = [&] {
                fiber writer{[&] { io::write(w.out, "abc", 3).value(); }};
                EXPECT_EQ(io::read(w.in, buffer, sizeof buffer).value(), 3u);
                writer.join();
            };
            for (int n = 0; n < 2; ++n) round();
            const counted_calls calls;
            for (int n = 0; n < rounds; ++n) round();
            EXPECT_LE(calls.of({SYS_read, SYS_recvmsg}), rounds) << w.name;
        }
        close_all(ways);
    });
}

// By POSIX's name, on a socket that the program has made non-blocking.
TEST_F(calls_test, a_receive_that_finds_nothing_is_made_once) {
    run({.processors = 1}, [] {
        int ends[2];
        ASSERT_EQ(ums_posix_socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        char c;
        {
            const counted_calls calls;
            EXPECT_EQ(ums_posix_recv(ends[0], &c, 1, 0), -1);
            EXPECT_EQ(*ums_errno_location(), EAGAIN);
            EXPECT_EQ(calls.of({SYS_recvfrom, SYS_recvmsg}), 1);
            EXPECT_EQ(calls.of({SYS_fcntl}), 1);
            EXPECT_EQ(calls.all(), 2);
        }
        ASSERT_EQ(ums_posix_write(ends[1], "x", 1), 1);
        EXPECT_EQ(ums_posix_recv(ends[0], &c, 1, 0), 1);
        for (const int end : ends) EXPECT_EQ(ums_posix_close(end), 0);
    });
}

// As in a handler of a signal that came while libums held one of its locks.
TEST_F(calls_test, a_close_inside_of_libums_leaves_the_rest_to_the_next_maker) {
    run({.processors = 1}, [] {
        int ends[2];
        ASSERT_EQ(ums_posix_pipe(ends), 0);
        char c;
        const auto pass_one = [&] {
            fiber reader{[&] { EXPECT_EQ(ums_posix_read(ends[0], &c, 1), 1); }};
            this_fiber::yield();
            EXPECT_EQ(ums_posix_write(ends[1], "x", 1), 1);
            reader.join();
        };
        pass_one();
        {
            const os::no_stop as_with_a_lock;
            const counted_calls calls;
            for (const int end : ends) EXPECT_EQ(ums_posix_close(end), 0);
            EXPECT_EQ(calls.all(), 0);  // Nothing but the C library's.
            EXPECT_EQ(ums_posix_close(ends[0]), -1);
            EXPECT_EQ(*ums_errno_location(), EBADF);
        }
        const int first = ends[0];
        ASSERT_EQ(ums_posix_pipe(ends), 0);
        EXPECT_EQ(ends[0], first);
        pass_one();
        for (const int end : ends) EXPECT_EQ(ums_posix_close(end), 0);
    });
}

// What a write to a pipe does about SIGPIPE is seen neither by the program nor by its children.
TEST_F(calls_test, the_signal_mask_is_the_programs_and_its_childrens) {
    const std::string before = blocked_signals("/proc/thread-self/status");
    ASSERT_FALSE(before.empty());
    on_a_fiber_and_on_a_thread([&] {
        const std::vector<way> ways = all_ways();
        for (const way& w : ways) {
            write_and_read(w);
            io::close(w.in).value();
            EXPECT_EQ(io::write(w.out, "x", 1).error(), std::errc::broken_pipe);
            io::close(w.out).value();
        }
        EXPECT_EQ(blocked_signals("/proc/thread-self/status"), before);
        const std::string says =
            "grep -qx '" + before.substr(0, before.size() - 1) + "' /proc/self/status";
        // system() itself blocks SIGCHLD, but not in its child.
        EXPECT_EQ(std::system(says.c_str()), 0);                // NOLINT(cert-env33-c)
        std::FILE* const opened = ::popen(says.c_str(), "re");  // NOLINT(cert-env33-c)
        EXPECT_EQ(::pclose(opened), 0);
        std::string shell = "sh", option = "-c", command = says;
        char* const arguments[] = {shell.data(), option.data(), command.data(), nullptr};
        pid_t child = -1;
        int status = -1;
        ASSERT_EQ(::posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, environ), 0);
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        child = ::fork();
        if (child == 0) {
            ::execv("/bin/sh", arguments);
            ::_exit(9);
        }
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    });
}

}  // namespace
