// SPDX-License-Identifier: MIT
// variants: migrate p1
//
// Descriptors of other libraries, which do whatever they like with the number.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <poll.h>
#include <stop_token>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/waiting.hpp"
#include "ums/fiber.hpp"
#include "ums/io.hpp"
#include "ums/net.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::deadline_after;
using ums::fiber;
namespace io = ums::io;
namespace net = ums::net;
namespace this_fiber = ums::this_fiber;

class foreign_test : public conserving_test {};

// Made as a library makes them, by the plain system call.
struct foreign_pair {
    int here = -1, there = -1;
    explicit foreign_pair(int flags = SOCK_NONBLOCK) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | flags, 0, ends) == 0) {
            here = ends[0];
            there = ends[1];
        }
    }
    ~foreign_pair() {
        if (here >= 0) ::close(here);
        if (there >= 0) ::close(there);
    }
    foreign_pair(const foreign_pair&) = delete;
    foreign_pair& operator=(const foreign_pair&) = delete;
};

ums::deadline soon() { return deadline_after(20s); }

bool takes_a_byte(int fd) {
    char c;
    return ::recv(fd, &c, 1, MSG_DONTWAIT) == 1;
}

// Sends a byte after the caller has begun to wait, and waits for it.
template <class Wait>
void expect_woken(int from, Wait wait) {
    fiber writer{[=] {
        for (int i = 0; i < 5; ++i) this_fiber::yield();
        EXPECT_EQ(::send(from, "x", 1, 0), 1);
    }};
    const auto before = std::chrono::steady_clock::now();
    wait();
    EXPECT_LT(std::chrono::steady_clock::now() - before, 15s) << "the event was lost";
    writer.join();
}

void expect_readable(int fd, int from) {
    expect_woken(from, [fd] { EXPECT_TRUE(io::wait_readable(fd, soon())); });
    EXPECT_TRUE(takes_a_byte(fd));
}

void expect_polled(int fd, int from) {
    expect_woken(from, [fd] { EXPECT_EQ(io::poll(fd, POLLIN, soon()).value_or(0), POLLIN); });
    EXPECT_TRUE(takes_a_byte(fd));
}

void expect_read(int fd, int from) {
    expect_woken(from, [fd] {
        char c;
        EXPECT_EQ(io::read(fd, &c, 1, soon()).value_or(0), 1u);
    });
}

// A client library that reconnects: close() and socket() give the same number.
TEST_F(foreign_test, a_number_that_a_library_closed_and_got_again_loses_no_event) {
    on_a_fiber_and_on_a_thread([] {
        for (const auto expect : {expect_readable, expect_polled, expect_read}) {
            for (int round = 0; round < scaled(20, 5); ++round) {
                foreign_pair p{round % 2 == 0 ? SOCK_NONBLOCK : 0};
                expect(p.here, p.there);
                const int number = p.here;
                ::close(std::exchange(p.here, -1));
                foreign_pair next;
                if (next.here != number) continue;  // Another thread was faster.
                expect(next.here, next.there);
            }
        }
    });
}

TEST_F(foreign_test, a_number_that_io_made_and_a_library_closes_after_forget_loses_no_event) {
    on_a_fiber_and_on_a_thread([] {
        for (int round = 0; round < scaled(20, 5); ++round) {
            int ends[2];
            io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
            expect_read(ends[0], ends[1]);
            for (const int end : ends) {
                io::forget(end);
                ::close(end);
            }
            foreign_pair next{0};
            expect_readable(next.here, next.there);
            expect_read(next.here, next.there);
            EXPECT_EQ(io::read(next.here, ends, 1, deadline_after(1us)).error(),
                      std::errc::timed_out);
        }
    });
}

// The new file is of an unexpected kind: what was known of the old one does not hold.
// A library closes the number and gets it again, and io::write() finds that out beside a fiber that
// waits for the new file.
TEST_F(foreign_test, a_wait_for_the_next_file_goes_on_when_another_fiber_uses_the_number) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair last, next;
        io::forget(last.here);  // A test before may have had it as a socket of io::.
        char c;
        ASSERT_EQ(::write(last.there, "x", 1), 1);
        io::read(last.here, &c, 1).value();
        const int number = last.here;
        ASSERT_EQ(::dup2(next.here, number), number);
        fiber waiter{[&] {
            io::wait_readable(number).value();
            EXPECT_EQ(::read(number, &c, 1), 1);
        }};
        until_waits(waiter);
        io::write_all(number, "y", 1).value();
        for (int i = 0; i < 50; ++i) this_fiber::yield();
        ASSERT_EQ(::write(next.there, "z", 1), 1);
        waiter.join();
        EXPECT_EQ(c, 'z');
    });
}

TEST_F(foreign_test, a_read_that_began_before_takes_nothing_from_the_next_file) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair last, next;
        const int number = last.here;
        io::forget(number);
        fiber reader{[&] {
            char c;
            EXPECT_EQ(io::read(number, &c, 1).error(), std::errc::bad_file_descriptor);
        }};
        until_waits(reader);
        ASSERT_EQ(::dup2(next.here, number), number);
        ASSERT_EQ(::write(next.there, "z", 1), 1);
        io::wait_readable(number).value();  // Wakes the reader, too.
        io::write_all(number, "y", 1).value();
        reader.join();
        char c;
        EXPECT_EQ(io::read(number, &c, 1).value(), 1u);
        EXPECT_EQ(c, 'z');
    });
}

// What an operation on a number does within its limits.
struct operation {
    const char* name;
    bool writes;
    std::function<std::error_code(int, const ums::limits&)> make;
};

std::error_code code_of(const auto& result) { return result.error(); }

const std::vector<operation>& operations() {
    static char text[8] = "secret";
    static iovec pieces[2] = {{text, 3}, {text + 3, 3}};
    static msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    static const std::vector<operation> all = {
        {"read", false, [](int fd, auto& l) { return code_of(io::read(fd, text, 6, l)); }},
        {"readv", false, [](int fd, auto& l) { return code_of(io::readv(fd, pieces, 2, l)); }},
        {"read_all", false, [](int fd, auto& l) { return code_of(io::read_all(fd, text, 6, l)); }},
        {"recv", false, [](int fd, auto& l) { return code_of(io::recv(fd, text, 6, 0, l)); }},
        {"recv all", false,
         [](int fd, auto& l) { return code_of(io::recv(fd, text, 6, MSG_WAITALL, l)); }},
        {"recvmsg", false,
         [](int fd, auto& l) { return code_of(io::recvmsg(fd, &message, 0, l)); }},
        {"splice", false,
         [](int fd, auto& l) {
             int ends[2];
             io::pipe(ends).value();
             const auto code = code_of(io::splice(fd, nullptr, ends[1], nullptr, 6, 0, l));
             for (const int end : ends) io::close(end).value();
             return code;
         }},
        {"write", true, [](int fd, auto& l) { return code_of(io::write(fd, text, 6, l)); }},
        {"writev", true, [](int fd, auto& l) { return code_of(io::writev(fd, pieces, 2, l)); }},
        {"write_all", true, [](int fd, auto& l) { return code_of(io::write_all(fd, text, 6, l)); }},
        {"send", true, [](int fd, auto& l) { return code_of(io::send(fd, text, 6, 0, l)); }},
        {"sendmsg", true, [](int fd, auto& l) { return code_of(io::sendmsg(fd, &message, 0, l)); }},
        {"splice to", true,
         [](int fd, auto& l) {
             int ends[2];
             io::pipe(ends).value();
             io::write_all(ends[1], text, 6).value();
             const auto code = code_of(io::splice(ends[0], nullptr, fd, nullptr, 6, 0, l));
             for (const int end : ends) io::close(end).value();
             return code;
         }},
    };
    return all;
}

// As many as `fd` has room for, or as it has.
void fill(int fd) {
    char block[4096] = {};
    while (::send(fd, block, sizeof block, MSG_DONTWAIT) > 0) continue;
}
void drain(int fd) {
    char block[4096];
    while (::recv(fd, block, sizeof block, MSG_DONTWAIT) > 0) continue;
}

// The number has another file when the wait ends, and nobody has told libums: by an event of the
// former file, which a duplicate keeps, or by the end of the limits.
TEST_F(foreign_test, whatever_ends_a_wait_the_numbers_next_file_is_left_alone) {
    on_a_fiber_and_on_a_thread([] {
        for (const operation& o : operations()) {
            for (const bool by_event : {true, false}) {
                foreign_pair last, next;
                const int number = last.here, keeps = ::dup(last.here);
                io::forget(number);
                if (o.writes) fill(number);
                std::stop_source stop;
                std::error_code error;
                fiber waits{[&] { error = o.make(number, stop.get_token()); }};
                until_waits(waits);
                ASSERT_EQ(::dup2(next.here, number), number);
                ASSERT_EQ(::write(next.there, "z", 1), 1);
                if (by_event && o.writes) drain(last.there);
                if (by_event && !o.writes) {
                    ASSERT_EQ(::write(last.there, "o", 1), 1);
                }
                if (!by_event) stop.request_stop();
                waits.join();
                EXPECT_TRUE(error) << o.name << ", event: " << by_event;
                char c = 0;
                EXPECT_EQ(::recv(next.here, &c, 1, MSG_DONTWAIT), 1) << o.name;
                EXPECT_EQ(c, 'z') << o.name;
                EXPECT_FALSE(takes_a_byte(next.there)) << o.name << ", event: " << by_event;
                ::close(keeps);
            }
        }
    });
}

// The wait is for the connection, and it is the file's number that has another one.
TEST_F(foreign_test, a_sendfile_that_waits_sends_nothing_of_the_numbers_next_file) {
    on_a_fiber_and_on_a_thread([] {
        const int last = ::memfd_create("last", MFD_CLOEXEC);
        const int next = ::memfd_create("next", MFD_CLOEXEC);
        ASSERT_EQ(::pwrite(last, "abc", 3, 0), 3);
        ASSERT_EQ(::pwrite(next, "xyz", 3, 0), 3);
        foreign_pair p;
        fill(p.here);
        fiber sender{[&] {
            off_t at = 0;
            EXPECT_EQ(io::sendfile(p.here, last, &at, 3).error(), std::errc::bad_file_descriptor);
        }};
        until_waits(sender);
        ASSERT_EQ(::dup2(next, last), last);
        drain(p.there);
        sender.join();
        EXPECT_FALSE(takes_a_byte(p.there));
        ::close(last);
        ::close(next);
    });
}

TEST_F(foreign_test, an_accept_that_waits_takes_no_connection_of_the_numbers_next_listener) {
    on_a_fiber_and_on_a_thread([] {
        net::listener last{net::endpoint::loopback(0)}, next{net::endpoint::loopback(0)};
        const int number = ::dup(last.fd());
        std::stop_source stop;
        fiber acceptor{[&] {
            EXPECT_EQ(io::accept(number, nullptr, nullptr, stop.get_token()).error(),
                      std::errc::bad_file_descriptor);
        }};
        until_waits(acceptor);
        ASSERT_EQ(::dup2(next.fd(), number), number);
        net::stream client = net::stream::connect(next.local().value()).value();
        stop.request_stop();
        acceptor.join();
        ::close(number);
        EXPECT_TRUE(next.accept());
    });
}

TEST_F(foreign_test, a_number_may_come_again_as_something_else) {
    on_a_fiber_and_on_a_thread([] {
        char c;
        int ends[2];
        for (const bool made_here : {false, true}) {
            if (made_here)
                io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
            else
                ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
            EXPECT_EQ(io::read(ends[0], &c, 1, deadline_after(1us)).error(), std::errc::timed_out);
            if (made_here)
                for (const int end : ends) io::forget(end);
            int pipe[2];
            ASSERT_EQ(::pipe(pipe), 0);
            EXPECT_EQ(::dup2(pipe[0], ends[0]), ends[0]);
            EXPECT_EQ(::dup2(pipe[1], ends[1]), ends[1]);
            EXPECT_EQ(io::read(ends[0], &c, 1, deadline_after(1us)).error(), std::errc::timed_out);
            EXPECT_EQ(io::write(ends[1], "x", 1).value(), 1u);
            EXPECT_EQ(io::read(ends[0], &c, 1, soon()).value(), 1u);
            const int file = ::open("/proc/self/exe", O_RDONLY);
            EXPECT_EQ(::dup2(file, ends[0]), ends[0]);
            EXPECT_EQ(io::read(ends[0], &c, 1).value(), 1u);
            foreign_pair last{0};
            EXPECT_EQ(::dup2(last.here, ends[0]), ends[0]);
            EXPECT_EQ(io::read(ends[0], &c, 1, deadline_after(1us)).error(), std::errc::timed_out);
            expect_readable(ends[0], last.there);
            for (const int fd : {ends[0], ends[1], pipe[0], pipe[1], file}) ::close(fd);
        }
    });
}

// The library reads by itself: what it has taken is not reported for ever.
TEST_F(foreign_test, what_others_have_read_is_waited_for_again) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair p;
        auto [here, there] = net::stream::pair().value();
        const std::pair<int, int> all[] = {{p.here, p.there}, {here.fd(), there.fd()}};
        for (const auto& [in, out] : all) {
            for (int i = 0; i < 5; ++i) {
                expect_readable(in, out);
                EXPECT_EQ(io::wait_readable(in, deadline_after(1us)).error(), std::errc::timed_out);
                EXPECT_EQ(io::poll(in, POLLIN, deadline_after(1us)).error(), std::errc::timed_out);
            }
            // Reads a part of what is there; the rest is reported.
            EXPECT_EQ(::send(out, "abc", 3, 0), 3);
            for (int i = 0; i < 3; ++i) {
                EXPECT_TRUE(io::wait_readable(in, soon()));
                EXPECT_TRUE(takes_a_byte(in));
            }
            EXPECT_EQ(io::wait_readable(in, deadline_after(1us)).error(), std::errc::timed_out);
        }
    });
}

// A duplicate keeps the file alive, and with it the engine's registration.
TEST_F(foreign_test, a_duplicate_that_outlives_the_number_disturbs_nobody) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair old;
        expect_readable(old.here, old.there);
        EXPECT_EQ(io::wait_readable(old.here, deadline_after(1us)).error(), std::errc::timed_out);
        const int number = old.here;
        old.here = ::dup(number);
        foreign_pair next;
        EXPECT_EQ(::dup2(next.here, number), number);  // Has the effect of close() and socket().
        ::close(std::exchange(next.here, number));
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(::send(old.there, "o", 1, 0), 1);
            EXPECT_EQ(io::wait_readable(number, deadline_after(1us)).error(), std::errc::timed_out);
            expect_readable(number, next.there);
            EXPECT_TRUE(takes_a_byte(old.here));
            expect_readable(old.here, old.there);
        }
        // The old file has its old number again.
        EXPECT_EQ(::dup2(old.here, number), number);
        expect_readable(number, old.there);
        expect_polled(number, old.there);
        // One file has two numbers, and both are waited for.
        fiber other{[&] { EXPECT_TRUE(io::wait_readable(number, soon())); }};
        expect_woken(old.there, [&] { EXPECT_TRUE(io::wait_readable(old.here, soon())); });
        other.join();
        EXPECT_TRUE(takes_a_byte(number));
    });
}

// A child has inherited the file and keeps it open.
TEST_F(foreign_test, a_file_that_a_child_keeps_disturbs_nobody) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair old;
        expect_readable(old.here, old.there);
        int hold[2];
        ASSERT_EQ(::pipe(hold), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            char c;
            ::close(hold[1]);
            while (::read(hold[0], &c, 1) < 0) continue;
            ::_exit(0);
        }
        ::close(hold[0]);
        EXPECT_EQ(io::wait_readable(old.here, deadline_after(1us)).error(), std::errc::timed_out);
        const int number = old.here;
        ::close(std::exchange(old.here, -1));
        foreign_pair next;
        if (next.here != number) {  // Another thread was faster.
            EXPECT_EQ(::dup2(next.here, number), number);
            ::close(std::exchange(next.here, number));
        }
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(::send(old.there, "o", 1, 0), 1);  // The child has it.
            EXPECT_EQ(io::wait_readable(number, deadline_after(1us)).error(), std::errc::timed_out);
            expect_readable(number, next.there);
            expect_polled(number, next.there);
        }
        ::close(hold[1]);
        int status;
        while (::waitpid(child, &status, 0) < 0) continue;
    });
}

TEST_F(foreign_test, the_peer_sees_the_end_when_a_library_closes) {
    on_a_fiber_and_on_a_thread([] {
        char c;
        foreign_pair p;
        expect_readable(p.here, p.there);
        EXPECT_EQ(io::wait_readable(p.here, deadline_after(1us)).error(), std::errc::timed_out);
        ::close(std::exchange(p.here, -1));
        EXPECT_EQ(::recv(p.there, &c, 1, MSG_DONTWAIT), 0);

        auto [here, there] = net::stream::pair().value();
        EXPECT_EQ(here.read(&c, 1, deadline_after(1us)).error(), std::errc::timed_out);
        ::close(here.release());
        EXPECT_EQ(there.read(&c, 1, soon()).value(), 0u);
    });
}

TEST_F(foreign_test, forget_ends_the_waits_and_leaves_the_file_open) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair p;
        std::atomic<bool> is_over = false;
        fiber reader{[&] {
            char c;
            EXPECT_EQ(io::read(p.here, &c, 1, soon()).error(), std::errc::bad_file_descriptor);
            is_over = true;
        }};
        do {  // The first may come before the wait.
            for (int i = 0; i < 50; ++i) this_fiber::yield();
            io::forget(p.here);
        } while (!is_over);
        reader.join();
        expect_read(p.here, p.there);
        io::forget(-1);
        io::forget(1 << 30);
    });
}

// The library may rely on calls that block.
TEST_F(foreign_test, waiting_for_readiness_changes_no_flags) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair p{0};
        expect_readable(p.here, p.there);
        EXPECT_TRUE(io::wait_writable(p.here));
        EXPECT_EQ(io::poll(p.here, POLLOUT).value(), POLLOUT);
        EXPECT_EQ(::fcntl(p.here, F_GETFL) & O_NONBLOCK, 0);
    });
}

TEST_F(foreign_test, both_directions_and_several_fibers_wait_for_one_number) {
    ums::run({.processors = 2}, [] {
        for (int round = 0; round < scaled(50, 10); ++round) {
            foreign_pair p;
            const std::vector<char> much(1u << 20, 'x');
            std::atomic<std::size_t> got = 0;
            fiber writer{
                [&] { EXPECT_TRUE(io::write_all(p.here, much.data(), much.size(), soon())); }};
            std::vector<fiber> readers;
            for (int i = 0; i < 3; ++i)
                readers.emplace_back([&] {
                    char c;
                    EXPECT_EQ(io::read(p.here, &c, 1, soon()).value_or(0), 1u);
                });
            std::vector<char> buffer(50'000);
            for (int i = 0; i < 3; ++i) {
                this_fiber::yield();
                EXPECT_EQ(::send(p.there, "y", 1, 0), 1);
            }
            while (got < much.size()) {
                const auto n = io::read(p.there, buffer.data(), buffer.size(), soon());
                if (!n || *n == 0) break;
                got += *n;
            }
            EXPECT_EQ(got.load(), much.size());
            writer.join();
            for (fiber& f : readers) f.join();
        }
    });
}

// --- Descriptors that the program adopts ---

TEST_F(foreign_test, adopting_changes_no_flags_and_forget_undoes_it) {
    on_a_fiber_and_on_a_thread([] {
        int pipe[2];
        ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
        foreign_pair p{0};
        const std::pair<int, int> all[] = {{p.here, p.there}, {pipe[0], pipe[1]}};
        for (const auto& [in, out] : all) {
            for (const int fd : {in, out, in}) io::adopt(fd).value();
            for (int i = 0; i < 3; ++i) {
                fiber writer{[fd = out] {
                    for (int k = 0; k < 5; ++k) this_fiber::yield();
                    EXPECT_EQ(io::write(fd, "xyz", 3).value(), 3u);
                }};
                char c[8];
                EXPECT_EQ(io::read(in, c, i == 1 ? 8 : 1).value(), i == 1 ? 3u : 1u);
                while (i != 1 && io::read(in, c, 8, ums::deadline{})) continue;
                writer.join();
            }
            for (const int fd : {in, out}) EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
            for (const int fd : {in, out}) io::forget(fd);
        }
        // Now a library may close and reuse the number.
        foreign_pair next{0};
        ASSERT_EQ(::dup2(next.here, pipe[0]), pipe[0]);
        expect_read(pipe[0], next.there);
        for (const int end : pipe) ::close(end);
        EXPECT_EQ(io::adopt(-1).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(io::adopt(1 << 30).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(io::adopt(1000).error(), std::errc::bad_file_descriptor);
    });
}

TEST_F(foreign_test, adopting_ends_the_waits_of_others) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair p;
        fiber reader{[&] {
            char c;
            EXPECT_EQ(io::read(p.here, &c, 1).error(), std::errc::bad_file_descriptor);
        }};
        until_waits(reader);
        io::adopt(p.here).value();
        reader.join();
        expect_read(p.here, p.there);
        io::close(std::exchange(p.here, -1)).value();
    });
}

TEST_F(foreign_test, a_stream_adopts_what_it_takes_over) {
    on_a_fiber_and_on_a_thread([] {
        foreign_pair p{0};
        net::stream here{std::exchange(p.here, -1)};
        net::stream there{std::exchange(p.there, -1)};
        const std::vector<char> much(1u << 20, 'x');
        fiber writer{[&] { EXPECT_TRUE(there.write_all(much.data(), much.size())); }};
        std::vector<char> got(much.size());
        EXPECT_TRUE(here.read_all(got.data(), got.size()));
        writer.join();
        EXPECT_EQ(::fcntl(here.fd(), F_GETFL) & O_NONBLOCK, 0);
        there.close().value();
        EXPECT_EQ(here.read(got.data(), 1).value(), 0u);
    });
}

TEST_F(foreign_test, a_blocking_listener_is_adopted_and_a_blocking_socket_connects) {
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        const int door = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        net::endpoint at = net::endpoint::loopback(0);
        ASSERT_EQ(::bind(door, at.data(), at.size()), 0);
        ASSERT_EQ(::listen(door, 5), 0);
        socklen_t bytes = net::endpoint::capacity;
        ASSERT_EQ(::getsockname(door, at.data(), &bytes), 0);
        io::adopt(door).value();
        EXPECT_EQ(io::accept(door, nullptr, nullptr, deadline_after(1ms)).error(),
                  std::errc::timed_out);
        fiber client{[&] {
            net::stream s{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
            io::connect(s.fd(), at.data(), at.size()).value();
            EXPECT_EQ(::fcntl(s.fd(), F_GETFL) & O_NONBLOCK, 0);
            s.write_all("hello").value();
        }};
        net::stream peer{io::accept(door).value()};
        char text[5];
        peer.read_all(text, 5).value();
        client.join();
        io::close(door).value();
    });
}

// A terminal has no call that does not block.
TEST_F(foreign_test, a_terminal_is_adopted_and_stays_blocking) {
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (ours < 0 || ::grantpt(ours) != 0 || ::unlockpt(ours) != 0)
            GTEST_SKIP() << "there are no terminals";
        char name[64];
        ASSERT_EQ(::ptsname_r(ours, name, sizeof name), 0);
        const int theirs = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(theirs, 0);
        io::adopt(theirs).value();
        for (int i = 0; i < 3; ++i) {
            fiber writer{[&] {
                this_fiber::yield();
                EXPECT_EQ(::write(ours, "x\n", 2), 2);
            }};
            char line[8];
            EXPECT_EQ(io::read(theirs, line, sizeof line, soon()).value_or(0), 2u);
            writer.join();
        }
        EXPECT_EQ(io::write(theirs, "y", 1).value(), 1u);
        EXPECT_EQ(::fcntl(theirs, F_GETFL) & O_NONBLOCK, 0);
        io::close(theirs).value();
        ::close(ours);
    });
}

// It is hung up when the last writer closes it, and comes to life with the next.
TEST_F(foreign_test, an_adopted_fifo_has_one_writer_after_another) {
    on_a_fiber_and_on_a_thread([] {
        char name[] = "/tmp/ums-foreign-test-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        const std::string path = std::string{name} + "/fifo";
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
        const int in = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        io::adopt(in).value();
        for (int i = 0; i < 5; ++i) {
            const int out = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
            char c[8];
            fiber writer{[&] {
                for (int k = 0; k < 5; ++k) this_fiber::yield();
                EXPECT_EQ(::write(out, "ab", 2), 2);
                for (int k = 0; k < 5; ++k) this_fiber::yield();
                ::close(out);
            }};
            EXPECT_EQ(io::read(in, c, sizeof c, soon()).value_or(9), 2u);
            EXPECT_EQ(io::read(in, c, sizeof c, soon()).value_or(9), 0u);
            writer.join();
        }
        io::close(in).value();
        ::unlink(path.c_str());
        ::rmdir(name);
    });
}

// One read gives one packet, and more is there.
TEST_F(foreign_test, an_adopted_pipe_may_keep_packets_apart) {
    on_a_fiber_and_on_a_thread([] {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_DIRECT), 0);
        for (const int end : ends) io::adopt(end).value();
        char c[8];
        EXPECT_EQ(io::read(ends[0], c, 8, deadline_after(1us)).error(), std::errc::timed_out);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(io::write(ends[1], "ab", 2).value(), 2u);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(io::read(ends[0], c, 8, soon()).value_or(0), 2u);
        for (const int end : ends) io::close(end).value();
    });
}

// An error queue makes a socket ready for ever, and a receive finds nothing.
TEST_F(foreign_test, a_socket_that_is_ready_with_nothing_to_read_burns_no_cpu) {
    ums::run({.processors = 1}, [] {
        const int door = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const int on = 1;
        ::setsockopt(door, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
        sockaddr_in nobody{};
        nobody.sin_family = AF_INET;
        nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        nobody.sin_port = htons(1);
        (void)::sendto(door, "x", 1, 0, reinterpret_cast<sockaddr*>(&nobody), sizeof nobody);
        char c;
        // First takes the pending error; then the queue is left.
        static_cast<void>(io::recv(door, &c, 1, 0, deadline_after(1ms)));
        timespec before, after;
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        EXPECT_EQ(io::recv(door, &c, 1, 0, deadline_after(300ms)).error(), std::errc::timed_out);
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                            static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e9;
        EXPECT_LT(used, 0.2);
        io::close(door);
    });
}

}  // namespace
