// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nosync
#include "ums/io.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <netinet/in.h>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "io/sigpipe.hpp"
#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/waiting.hpp"
#include "ums/fiber.hpp"
#include "ums/net.hpp"
#include "ums/offload.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::deadline_after;
using ums::fiber;
using ums::net::endpoint;
using ums::net::listener;
using ums::net::stream;
namespace io = ums::io;
namespace this_fiber = ums::this_fiber;

class io_test : public conserving_test {};

struct pipe_ends {
    int in, out;
    pipe_ends() {
        int ends[2];
        io::pipe(ends).value();
        in = ends[0];
        out = ends[1];
    }
    ~pipe_ends() {
        if (in >= 0) io::close(in);
        if (out >= 0) io::close(out);
    }
    void close_in() { io::close(std::exchange(in, -1)); }
    void close_out() { io::close(std::exchange(out, -1)); }
};

// Makes the engine by a wait, so that it takes its descriptors now.
void make_the_engine() {
    int ends[2];
    io::pipe(ends).value();
    char c;
    EXPECT_EQ(io::read(ends[0], &c, 1, deadline_after(1us)).error(), std::errc::timed_out);
    io::close(ends[0]);
    io::close(ends[1]);
}

// Ends a test that would hang: calls f() unless it is destroyed within twenty seconds.
class rescue {
public:
    template <class F>
    explicit rescue(F f) {
        thread_ = std::jthread{[f](std::stop_token over) {
            std::mutex m;
            std::unique_lock lock{m};
            std::condition_variable_any never;
            never.wait_for(lock, over, 20s, [] { return false; });
            if (!over.stop_requested()) f();
        }};
    }

private:
    std::jthread thread_;
};

// Whether a byte that is there is read, and not only when the deadline causes a last attempt.
bool has_byte(int fd) {
    const ums::deadline limit = deadline_after(20s);
    char c;
    return io::read(fd, &c, 1, limit).value_or(0) == 1 && ums::deadline::clock::now() < limit;
}

// While it exists, `fd` is the standard input, one of the numbers that stay blocking.
class as_stdin {
public:
    explicit as_stdin(int fd) : before_{::fcntl(0, F_DUPFD_CLOEXEC, 3)} { put(fd); }
    ~as_stdin() {
        put(before_);
        ::close(before_);
    }
    as_stdin(const as_stdin&) = delete;
    as_stdin& operator=(const as_stdin&) = delete;

private:
    static void put(int fd) {
        // Not closed first: the kernel refuses dup2() (EBUSY) if another thread of the process, as
        // the detector, is opening a file that is about to get the number.
        io::forget(0);
        EXPECT_EQ(::dup2(fd, 0), 0);
    }
    const int before_;
};

void yield_often() {
    for (int i = 0; i < 50; ++i) this_fiber::yield();
}

TEST_F(io_test, a_pipe_carries_bytes_and_then_its_end) {
    on_a_fiber_and_on_a_thread([] {
        pipe_ends p;
        fiber writer{[&] {
            yield_often();
            io::write_all(p.out, "hello", 5).value();
            p.close_out();
        }};
        char buffer[8];
        io::read_all(p.in, buffer, 5).value();
        EXPECT_EQ(std::string(buffer, 5), "hello");
        EXPECT_EQ(io::read(p.in, buffer, 1).value(), 0u);
        EXPECT_EQ(io::read_all(p.in, buffer, 1).error().value(), ENOMSG);
        writer.join();
    });
}

TEST_F(io_test, a_full_pipe_makes_the_writer_wait) {
    on_a_fiber_and_on_a_thread([] {
        pipe_ends p;
        const std::size_t bytes = 1u << 20;
        fiber writer{[&] {
            const std::vector<char> data(bytes, 'x');
            io::write_all(p.out, data.data(), bytes).value();
            p.close_out();
        }};
        std::vector<char> buffer(5000);
        std::size_t got = 0;
        while (const std::size_t n = io::read(p.in, buffer.data(), buffer.size()).value()) got += n;
        EXPECT_EQ(got, bytes);
        writer.join();
    });
}

// For a pipe, and for a TCP connection, of which libums knows when it is empty.
TEST_F(io_test, readiness_is_waited_for_without_a_buffer) {
    on_a_fiber_and_on_a_thread([] {
        pipe_ends p;
        listener door{endpoint::loopback(0)};
        stream client = stream::connect(door.local().value()).value();
        stream peer = door.accept().value();
        const std::pair<int, int> ends[] = {{p.in, p.out}, {peer.fd(), client.fd()}};
        for (const auto& each : ends) {
            const int in = each.first, out = each.second;
            char c[8];
            EXPECT_TRUE(io::wait_writable(out));
            for (int i = 0; i < 20; ++i) {
                fiber writer{[&, i] {
                    if (i % 2 == 0) yield_often();
                    io::write_all(out, "x", 1).value();
                }};
                // The wait is only a hint, but neither the wait nor the read after it misses what
                // comes.
                EXPECT_TRUE(io::wait_readable(in));
                EXPECT_EQ(io::read(in, c, sizeof c).value(), 1u);
                writer.join();
            }
            // The event of a byte that was read before it was told may come late.
            ums::result<void> ready = io::wait_readable(in, ums::deadline{});
            for (; ready; ready = io::wait_readable(in, ums::deadline{}))
                EXPECT_EQ(io::read(in, c, sizeof c, ums::deadline{}).error(), std::errc::timed_out);
            EXPECT_EQ(ready.error(), std::errc::timed_out);
            std::stop_source stop;
            stop.request_stop();
            while ((ready = io::wait_readable(in, stop.get_token())))
                EXPECT_EQ(io::read(in, c, sizeof c, ums::deadline{}).error(), std::errc::timed_out);
            EXPECT_EQ(ready.error(), std::errc::operation_canceled);
        }
        EXPECT_EQ(io::wait_readable(-1).error(), std::errc::bad_file_descriptor);
        fiber closer{[&] {
            yield_often();
            (void)client.close();
        }};
        EXPECT_TRUE(peer.wait_readable());  // It waits for the end.
        char c;
        EXPECT_EQ(peer.read(&c, 1).value(), 0u);
        closer.join();
    });
}

TEST_F(io_test, a_close_ends_the_wait_for_readiness) {
    // The waiter that runs after the close must find the number unused, and a carrier that a
    // detector's hand-off adds would take it.
    const ums::options two{.processors = 2, .block = ums::block_detection::off};
    const auto body = [] {
        auto [here, there] = stream::pair().value();
        char c;
        // Try once first, so that the fiber does wait.
        EXPECT_EQ(here.read(&c, 1, ums::deadline{}).error(), std::errc::timed_out);
        const int fd = here.fd();
        fiber closer{[&] {
            yield_often();
            (void)here.close();
        }};
        EXPECT_EQ(io::wait_readable(fd).error(), std::errc::bad_file_descriptor);
        closer.join();
    };
    for (int i = 0; i < scaled(100, 20); ++i) ums::run(two, body);
    const ums::runtime started{two};
    for (int i = 0; i < scaled(100, 20); ++i) body();
}

TEST_F(io_test, writing_where_nobody_reads_is_an_error_and_no_signal) {
    on_a_fiber_and_on_a_thread([] {
        pipe_ends p;
        p.close_in();
        EXPECT_EQ(io::write(p.out, "x", 1).error(), std::errc::broken_pipe);
        int ends[2];
        io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
        io::close(ends[1]);
        EXPECT_EQ(io::write(ends[0], "x", 1).error(), std::errc::broken_pipe);
        EXPECT_EQ(io::send(ends[0], "x", 1).error(), std::errc::broken_pipe);
        const iovec pieces[2] = {{const_cast<char*>("a"), 1}, {const_cast<char*>("b"), 1}};
        EXPECT_EQ(io::writev(ends[0], pieces, 2).error(), std::errc::broken_pipe);
        io::close(ends[0]);
        sigset_t pending;
        sigpending(&pending);
        EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
    });
}

TEST_F(io_test, a_part_that_was_written_before_nobody_read_any_more_leaves_no_signal) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const int room = ::fcntl(ends[0], F_GETPIPE_SZ);
    std::thread reader{[&] {
        int filled = 0;
        while (filled < room) ::ioctl(ends[0], FIONREAD, &filled);
        ::close(ends[0]);
    }};
    const std::vector<char> much(static_cast<std::size_t>(room) + 1, 'x');
    sigset_t only, before, pending;
    sigemptyset(&only);
    sigaddset(&only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &only, &before);
    auto call = [&]() noexcept {
        return static_cast<long>(::write(ends[1], much.data(), much.size()));
    };
    EXPECT_EQ(io::without_sigpipe(much.size(), call), room);
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
    const timespec zero{};
    ::sigtimedwait(&only, nullptr, &zero);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    reader.join();
    ::close(ends[1]);
}

TEST_F(io_test, a_blocking_standard_stream_takes_all_or_as_much_as_the_limits_allow) {
    ums::run({.processors = 1}, [] {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        {
            const as_stdin out{ends[1]};
            ::close(ends[1]);
            const std::vector<char> much(1u << 20, 'x');
            const iovec pieces[2] = {{const_cast<char*>(much.data()), 100},
                                     {const_cast<char*>(much.data()), much.size() - 100}};
            std::vector<char> buffer(much.size());
            {
                const rescue end{[&] {
                    while (::read(ends[0], buffer.data(), buffer.size()) == 4096) {
                    }
                }};
                const std::size_t part = io::writev(0, pieces, 2, deadline_after(1ms)).value();
                EXPECT_GT(part, 0u);
                EXPECT_LT(part, much.size());
                EXPECT_EQ(io::write(0, "x", 1, deadline_after(1ms)).error(), std::errc::timed_out);
                const int file = io::open("/proc/self/exe", O_RDONLY).value();
                EXPECT_EQ(io::sendfile(0, file, nullptr, 1 << 20, deadline_after(1ms)).error(),
                          std::errc::timed_out);
                io::close(file);
                EXPECT_TRUE(io::read_all(ends[0], buffer.data(), part));
            }
            fiber writer{[&] { EXPECT_EQ(io::writev(0, pieces, 2).value(), much.size()); }};
            EXPECT_TRUE(io::read_all(ends[0], buffer.data(), much.size()));
            writer.join();
        }
        io::close(ends[0]);
    });
}

TEST_F(io_test, a_bad_number_is_an_error) {
    on_a_fiber_and_on_a_thread([] {
        char c;
        for (const int fd : {-1, -1000, 1'000'000, 1 << 30}) {
            EXPECT_EQ(io::read(fd, &c, 1).error(), std::errc::bad_file_descriptor) << fd;
            EXPECT_EQ(io::write(fd, &c, 1).error(), std::errc::bad_file_descriptor) << fd;
            EXPECT_EQ(io::recv(fd, &c, 1).error(), std::errc::bad_file_descriptor) << fd;
            EXPECT_EQ(io::accept(fd).error(), std::errc::bad_file_descriptor) << fd;
            EXPECT_EQ(io::close(fd).error(), std::errc::bad_file_descriptor) << fd;
            EXPECT_EQ(io::poll(fd, POLLIN).error(), std::errc::bad_file_descriptor) << fd;
            EXPECT_EQ(io::dup(fd).error(), std::errc::bad_file_descriptor) << fd;
        }
    });
}

TEST_F(io_test, a_blocking_descriptor_from_elsewhere_does_not_block_the_processor) {
    ums::run({.processors = 1}, [] {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        fiber writer{[&] { io::write_all(ends[1], "x", 1).value(); }};
        char c;
        EXPECT_EQ(io::read(ends[0], &c, 1).value(), 1u);
        writer.join();
        io::close(ends[0]);
        io::close(ends[1]);
    });
}

TEST_F(io_test, several_fibers_may_wait_for_one_descriptor) {
    ums::run({.processors = 2}, [] {
        pipe_ends p;
        std::atomic<int> got = 0;
        std::vector<fiber> readers;
        for (int i = 0; i < 20; ++i)
            readers.emplace_back([&] {
                char c;
                got += static_cast<int>(io::read(p.in, &c, 1).value());
            });
        for (int i = 0; i < 20; ++i) {
            io::write_all(p.out, "x", 1).value();
            if (i % 3 == 0) this_fiber::yield();
        }
        for (fiber& f : readers) f.join();
        EXPECT_EQ(got, 20);
    });
}

TEST_F(io_test, one_of_several_waiters_gives_up_and_the_others_get_what_comes) {
    ums::run({.processors = 2}, [] {
        pipe_ends p;
        for (int round = 0; round < scaled(200, 40); ++round) {
            std::vector<fiber> readers;
            std::atomic<int> got = 0, late = 0;
            for (int i = 0; i < 6; ++i)
                readers.emplace_back([&, i] {
                    char c;
                    const auto n =
                        io::read(p.in, &c, 1, i % 2 == 0 ? ums::limits{} : deadline_after(100us));
                    n ? ++got : ++late;
                });
            this_fiber::yield();
            for (int i = 0; i < 6; ++i) io::write_all(p.out, "x", 1).value();
            for (fiber& f : readers) f.join();
            EXPECT_EQ(got + late, 6);
            EXPECT_GE(got, 3);
            char rest[8];
            if (late != 0) {
                EXPECT_EQ(io::read(p.in, rest, sizeof rest).value(), std::size_t(late));
            }
        }
    });
}

// A defect of libfibre: an error event wakes only the reader.
TEST_F(io_test, a_hang_up_wakes_both_directions) {
    on_a_fiber_and_on_a_thread([] {
        int ends[2];
        io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
        std::vector<char> much(4u << 20, 'x');
        fiber writer{[&] { EXPECT_FALSE(io::write_all(ends[0], much.data(), much.size())); }};
        fiber reader{[&] {
            char c;
            const auto n = io::read(ends[0], &c, 1);
            EXPECT_TRUE(!n || *n == 0);
        }};
        yield_often();
        io::close(ends[1]);
        writer.join();
        reader.join();
        io::close(ends[0]);
    });
}

// A defect of libfibre and uThreads: close() does not wake a waiter.
TEST_F(io_test, a_close_wakes_all_that_wait_in_both_directions) {
    // The waiter that runs after the close must find the number unused. A carrier that a detector's
    // hand-off adds would take it, and so would the engine if it had to be made then.
    ums::run({.processors = 2, .block = ums::block_detection::off}, [] {
        make_the_engine();
        for (int round = 0; round < scaled(200, 40); ++round) {
            int ends[2];
            io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
            std::vector<char> much(1u << 20, 'x');
            std::vector<fiber> all;
            for (int i = 0; i < 3; ++i)
                all.emplace_back([&] {
                    char c;
                    EXPECT_EQ(io::read(ends[0], &c, 1).error(), std::errc::bad_file_descriptor);
                });
            all.emplace_back([&] {
                EXPECT_EQ(io::write_all(ends[0], much.data(), much.size()).error(),
                          std::errc::bad_file_descriptor);
            });
            for (int i = 0; i < round % 10; ++i) this_fiber::yield();
            if (round % 2 == 0) yield_often();
            io::close(ends[0]);
            for (fiber& f : all) f.join();
            io::close(ends[1]);
        }
    });
}

TEST_F(io_test, a_number_that_is_used_again_gets_no_event_of_the_old_file) {
    // The waiter that runs after the close must find the number unused. A carrier that a detector's
    // hand-off adds would take it, and so would the engine if it had to be made then.
    ums::run({.processors = 2, .block = ums::block_detection::off}, [] {
        make_the_engine();
        for (int round = 0; round < scaled(1000, 100); ++round) {
            int a[2], b[2];
            io::socketpair(AF_UNIX, SOCK_STREAM, 0, a).value();
            fiber reader{[&] {
                char c;
                // The byte may come before the close.
                static_cast<void>(io::read(a[0], &c, 1));
            }};
            if (round % 2 == 0) yield_often();
            fiber writer{[&, fd = a[1]] {
                static_cast<void>(io::write(fd, "x", 1));
                io::close(fd);
            }};
            if (round % 3 == 0) this_fiber::yield();
            io::close(a[0]);
            reader.join();
            writer.join();
            io::socketpair(AF_UNIX, SOCK_STREAM, 0, b).value();
            char c = 0;
            EXPECT_EQ(io::read(b[0], &c, 1, deadline_after(50us)).error(), std::errc::timed_out);
            fiber late{[&] { io::write_all(b[1], "y", 1).value(); }};
            EXPECT_EQ(io::read(b[0], &c, 1).value(), 1u);
            EXPECT_EQ(c, 'y');
            late.join();
            io::close(b[0]);
            io::close(b[1]);
        }
    });
}

TEST_F(io_test, who_was_woken_before_a_close_does_not_read_from_the_next_file) {
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        make_the_engine();
        for (int round = 0; round < 10; ++round) {
            int old[2], order[2], next[2];
            io::socketpair(AF_UNIX, SOCK_STREAM, 0, old).value();
            io::socketpair(AF_UNIX, SOCK_STREAM, 0, order).value();
            std::string got;
            fiber reader{[&] {
                char buffer[8];
                if (const auto n = io::read(old[0], buffer, sizeof buffer)) got.assign(buffer, *n);
            }};
            fiber closer{[&] {
                char c;
                io::read(order[0], &c, 1).value();
                io::close(old[0]);
                io::socketpair(AF_UNIX, SOCK_STREAM, 0, next).value();
                io::write(next[1], "next", 4).value();
            }};
            yield_often();
            // The processor finds both edges at once, the closer's first.
            EXPECT_EQ(::write(order[1], "x", 1), 1);
            EXPECT_EQ(::write(old[1], "old", 3), 3);
            reader.join();
            closer.join();
            EXPECT_NE(got, "next");
            char buffer[8];
            EXPECT_EQ(io::read(next[0], buffer, sizeof buffer).value(), 4u);
            for (const int fd : {old[1], order[0], order[1], next[0], next[1]}) io::close(fd);
        }
    });
}

// A reader that mostly finds nothing lets the others run before it tries.
TEST_F(io_test, who_gives_way_to_a_close_does_not_read_from_the_next_file) {
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        make_the_engine();
        for (int habit = 0; habit < 40; ++habit) {
            pipe_ends old, answers;
            char c = 'x';
            fiber answer{[&] {
                char d;
                for (int n = 0; n < habit; ++n) {
                    io::read(old.in, &d, 1).value();
                    io::write(answers.out, &d, 1).value();
                }
            }};
            for (int n = 0; n < habit; ++n) {
                io::write(old.out, &c, 1).value();
                io::read(answers.in, &c, 1).value();
            }
            answer.join();
            const int number = old.in;
            fiber reader{[number] {
                char d;
                EXPECT_EQ(io::read(number, &d, 1).error(), std::errc::bad_file_descriptor);
            }};
            this_fiber::yield();
            old.close_in();
            pipe_ends next;
            EXPECT_EQ(next.in, number);
            io::write(next.out, "y", 1).value();
            reader.join();
            EXPECT_EQ(io::read(next.in, &c, 1, deadline_after(0us)).value(), 1u);
            EXPECT_EQ(c, 'y');
        }
    });
}

// Giving way ends with an attempt, and the limits count as for any other.
TEST_F(io_test, who_gives_way_keeps_to_the_limits) {
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        pipe_ends there, back;
        char c = 'x';
        const auto rounds = [&](int count) {
            fiber answer{[&] {
                char d;
                for (int n = 0; n < count; ++n) {
                    io::read(there.in, &d, 1).value();
                    io::write(back.out, &d, 1).value();
                }
            }};
            for (int n = 0; n < count; ++n) {
                io::write(there.out, &c, 1).value();
                io::read(back.in, &c, 1).value();
            }
            answer.join();
        };
        rounds(20);
        std::stop_source stop;
        stop.request_stop();
        for (int n = 0; n < 40; ++n) {
            EXPECT_EQ(io::read(back.in, &c, 1, deadline_after(0us)).error(), std::errc::timed_out);
            EXPECT_EQ(io::read(back.in, &c, 1, stop.get_token()).error(),
                      std::errc::operation_canceled);
            rounds(1);
            // What is there is read, whatever the limits are.
            fiber writer{[&] { io::write(back.out, "y", 1).value(); }};
            this_fiber::yield();
            EXPECT_EQ(io::read(back.in, &c, 1, deadline_after(0us)).value(), 1u);
            EXPECT_EQ(c, 'y');
            writer.join();
        }
    });
}

TEST_F(io_test, a_number_that_was_closed_behind_our_back_is_clean_when_it_comes_again) {
    // No detector: a carrier that its hand-off adds would take the number.
    ums::run({.processors = 2, .block = ums::block_detection::off}, [] {
        pipe_ends first;
        char c;
        EXPECT_EQ(io::read(first.in, &c, 1, deadline_after(1ms)).error(), std::errc::timed_out);
        ::close(first.in);
        ::close(first.out);
        pipe_ends again;
        EXPECT_EQ(first.in, again.in);
        first.in = first.out = -1;
        fiber writer{[&] {
            yield_often();
            io::write_all(again.out, "x", 1).value();
        }};
        EXPECT_EQ(io::read(again.in, &c, 1).value(), 1u);
        writer.join();
    });
}

TEST_F(io_test, poll_waits_for_one_direction_or_both) {
    on_a_fiber_and_on_a_thread([] {
        int ends[2];
        io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
        EXPECT_EQ(io::poll(ends[0], POLLIN | POLLOUT).value(), POLLOUT);
        EXPECT_EQ(io::poll(ends[0], POLLIN, deadline_after(1ms)).error(), std::errc::timed_out);
        fiber writer{[&] {
            yield_often();
            io::write_all(ends[1], "x", 1).value();
        }};
        EXPECT_EQ(io::poll(ends[0], POLLIN).value(), POLLIN);
        EXPECT_EQ(io::poll(ends[0], POLLIN | POLLOUT).value(), POLLIN | POLLOUT);
        writer.join();
        io::close(ends[1]);
        EXPECT_EQ(io::poll(ends[0], POLLIN).value() & POLLHUP, POLLHUP);
        io::close(ends[0]);
    });
}

TEST_F(io_test, poll_and_select_wait_for_the_first_of_many) {
    on_a_fiber_and_on_a_thread([] {
        std::vector<pipe_ends> pipes(10);
        std::vector<pollfd> fds;
        for (const pipe_ends& p : pipes) fds.push_back({p.in, POLLIN, 0});
        fds.push_back({-1, POLLIN, 0});
        EXPECT_EQ(io::poll(fds.data(), fds.size(), deadline_after(1ms)).value(), 0u);
        fiber writer{[&] {
            yield_often();
            io::write_all(pipes[7].out, "x", 1).value();
        }};
        EXPECT_EQ(io::poll(fds.data(), fds.size()).value(), 1u);
        for (std::size_t i = 0; i < fds.size(); ++i) EXPECT_EQ(fds[i].revents, i == 7 ? POLLIN : 0);
        writer.join();
        fd_set in;
        FD_ZERO(&in);
        FD_SET(pipes[3].in, &in);
        EXPECT_EQ(io::select(pipes[3].in + 1, &in, nullptr, nullptr, deadline_after(1ms)).value(),
                  0u);
        EXPECT_FALSE(FD_ISSET(pipes[3].in, &in));
        FD_SET(pipes[3].in, &in);
        FD_SET(pipes[7].in, &in);
        EXPECT_EQ(io::select(pipes[7].in + 1, &in, nullptr, nullptr).value(), 1u);
        EXPECT_TRUE(FD_ISSET(pipes[7].in, &in) && !FD_ISSET(pipes[3].in, &in));
    });
}

// epoll_ctl() says EPERM: a file is always ready, but only for what it is asked.
TEST_F(io_test, poll_and_select_wait_for_others_beside_a_file) {
    on_a_fiber_and_on_a_thread([] {
        const int file = io::open("/proc/self/exe", O_RDONLY).value();
        pipe_ends p;
        const auto write_soon = [&] {
            return fiber{[&] {
                yield_often();
                io::write_all(p.out, "x", 1).value();
            }};
        };
        const ums::deadline limit = deadline_after(20s);
        pollfd fds[2] = {{file, 0, 0}, {p.in, POLLIN, 0}};
        fiber writer = write_soon();
        EXPECT_EQ(io::poll(fds, 2, limit).value(), 1u);
        writer.join();
        EXPECT_TRUE(has_byte(p.in));
        fd_set in, except;
        FD_ZERO(&in);
        FD_ZERO(&except);
        FD_SET(p.in, &in);
        FD_SET(file, &except);
        writer = write_soon();
        EXPECT_EQ(io::select(FD_SETSIZE, &in, nullptr, &except, limit).value(), 1u);
        EXPECT_LT(ums::deadline::clock::now(), limit);
        EXPECT_TRUE(FD_ISSET(p.in, &in));
        EXPECT_FALSE(FD_ISSET(file, &except));
        writer.join();
        io::close(file);
    });
}

TEST_F(io_test, select_waits_on_when_an_end_is_in_no_set_that_tells_of_it) {
    on_a_fiber_and_on_a_thread([] {
        pipe_ends quiet, ended;
        ended.close_out();
        fd_set in, except;
        const auto set = [&] {
            FD_ZERO(&in);
            FD_ZERO(&except);
            FD_SET(quiet.in, &in);
            FD_SET(ended.in, &except);
        };
        set();
        const ums::deadline soon = deadline_after(5ms);
        EXPECT_EQ(io::select(FD_SETSIZE, &in, nullptr, &except, soon).value(), 0u);
        EXPECT_GE(ums::deadline::clock::now(), soon);
        set();
        fiber writer{[&] {
            yield_often();
            io::write_all(quiet.out, "x", 1).value();
        }};
        EXPECT_EQ(io::select(FD_SETSIZE, &in, nullptr, &except).value(), 1u);
        EXPECT_TRUE(FD_ISSET(quiet.in, &in));
        EXPECT_FALSE(FD_ISSET(ended.in, &except));
        writer.join();
    });
}

TEST_F(io_test, data_is_not_hidden_by_a_poll_for_something_else) {
    const auto try_all = [] {
        for (const short events : {POLLRDHUP, POLLPRI, 0, POLLRDBAND, POLLRDHUP | POLLPRI}) {
            auto [here, there] = stream::pair().value();
            there.write_all("x").value();
            const rescue end{[fd = there.fd()] { ::shutdown(fd, SHUT_RDWR); }};
            EXPECT_EQ(io::poll(here.fd(), events, deadline_after(1ms)).error(),
                      std::errc::timed_out);
            EXPECT_TRUE(has_byte(here.fd()));
            EXPECT_EQ(io::poll(here.fd(), POLLIN | POLLRDHUP, deadline_after(1ms)).error(),
                      std::errc::timed_out);
            ::shutdown(there.fd(), SHUT_WR);
            if ((events & POLLRDHUP) != 0) {
                EXPECT_EQ(io::poll(here.fd(), events).value(), POLLRDHUP);
            }
        }
    };
    on_a_fiber_and_on_a_thread(try_all);
    try_all();
}

TEST_F(io_test, data_is_not_hidden_by_a_look_at_what_lies_beside_it) {
    const auto try_it = [] {
        ums::net::datagram a{endpoint::loopback(0)};
        a.send_to("x", 1, a.local().value()).value();
        char c;
        iovec piece{&c, 1};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        // The kernel, too, does not wait for an error.
        EXPECT_EQ(io::recvmsg(a.fd(), &message, MSG_ERRQUEUE).error(),
                  std::errc::resource_unavailable_try_again);
        EXPECT_TRUE(has_byte(a.fd()));
    };
    on_a_fiber_and_on_a_thread(try_it);
    try_it();
}

TEST_F(io_test, an_epoll_loop_of_somebody_else_runs_in_a_fiber) {
    on_a_fiber_and_on_a_thread([] {
        const int ep = ::epoll_create1(EPOLL_CLOEXEC);
        pipe_ends p;
        epoll_event on{EPOLLIN, {.u32 = 42}};
        ASSERT_EQ(::epoll_ctl(ep, EPOLL_CTL_ADD, p.in, &on), 0);
        epoll_event got[4];
        EXPECT_EQ(io::epoll_wait(ep, got, 4, deadline_after(1ms)).value(), 0u);
        for (int i = 0; i < 10; ++i) {
            fiber writer{[&] {
                yield_often();
                io::write_all(p.out, "x", 1).value();
            }};
            EXPECT_EQ(io::epoll_wait(ep, got, 4).value(), 1u);
            EXPECT_EQ(got[0].data.u32, 42u);
            char c;
            EXPECT_EQ(io::read(p.in, &c, 1).value(), 1u);
            writer.join();
        }
        io::close(ep);
    });
}

TEST_F(io_test, files_are_read_and_written) {
    on_a_fiber_and_on_a_thread([] {
        char path[] = "/tmp/ums-io-test-XXXXXX";
        ::close(::mkstemp(path));
        const int fd = io::open(path, O_RDWR).value();
        EXPECT_EQ(io::pwrite(fd, "hello world", 11, 0).value(), 11u);
        io::fsync(fd).value();
        io::fdatasync(fd).value();
        char buffer[32];
        EXPECT_EQ(io::pread(fd, buffer, sizeof buffer, 6).value(), 5u);
        EXPECT_EQ(std::string(buffer, 5), "world");
        EXPECT_EQ(io::read(fd, buffer, 5).value(), 5u);
        EXPECT_EQ(std::string(buffer, 5), "hello");
        EXPECT_EQ(io::write(fd, "!", 1).value(), 1u);
        EXPECT_EQ(io::pread(fd, buffer, 6, 0).value(), 6u);
        EXPECT_EQ(std::string(buffer, 6), "hello!");
        EXPECT_EQ(io::pread(fd, buffer, 6, 100).value(), 0u);
        EXPECT_EQ(io::pread(fd, buffer, 6, -1).error(), std::errc::invalid_argument);
        // Writes to a socket.
        auto [a, b] = stream::pair().value();
        off_t from = 0;
        EXPECT_EQ(io::sendfile(a.fd(), fd, &from, 100).value(), 11u);
        EXPECT_EQ(b.read(buffer, sizeof buffer).value(), 11u);
        io::close(fd);
        ::unlink(path);
        EXPECT_EQ(io::open("/nonexistent/file", O_RDONLY).error(),
                  std::errc::no_such_file_or_directory);
    });
}

TEST_F(io_test, splice_moves_from_a_socket_through_a_pipe) {
    on_a_fiber_and_on_a_thread([] {
        auto [a, b] = stream::pair().value();
        pipe_ends p;
        fiber writer{[&end = a] {
            yield_often();
            end.write_all("hello").value();
        }};
        EXPECT_EQ(io::splice(b.fd(), nullptr, p.out, nullptr, 100).value(), 5u);
        char buffer[8];
        EXPECT_EQ(io::read(p.in, buffer, sizeof buffer).value(), 5u);
        writer.join();
    });
}

TEST_F(io_test, splice_gives_up_on_a_blocking_socket_from_elsewhere) {
    on_a_fiber_and_on_a_thread([] {
        listener door{endpoint::loopback(0)};
        const endpoint at = door.local().value();
        const int from = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        ASSERT_EQ(::connect(from, at.data(), at.size()), 0);
        stream peer = door.accept().value();
        pipe_ends p;
        const rescue end{[&] { ::shutdown(from, SHUT_RDWR); }};
        EXPECT_EQ(io::splice(from, nullptr, p.out, nullptr, 1, 0, deadline_after(1ms)).error(),
                  std::errc::timed_out);
        peer.write_all("x").value();
        EXPECT_EQ(io::splice(from, nullptr, p.out, nullptr, 1).value(), 1u);
        io::close(from);
    });
}

TEST_F(io_test, a_receive_of_all_takes_one_message_where_they_are_kept_apart) {
    on_a_fiber_and_on_a_thread([] {
        for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
            int ends[2];
            io::socketpair(AF_UNIX, type, 0, ends).value();
            for (const char* text : {"one", "two"})
                EXPECT_EQ(io::send(ends[0], text, 3).value(), 3u);
            char buffer[6];
            EXPECT_EQ(io::recv(ends[1], buffer, sizeof buffer, MSG_WAITALL).value(), 3u);
            EXPECT_EQ(io::recv(ends[1], buffer, sizeof buffer, MSG_WAITALL).value(), 3u);
            EXPECT_EQ(std::string(buffer, 3), "two");
            io::close(ends[0]);
            io::close(ends[1]);
        }
    });
}

// The sender's own socket is writable all the time.
void wait_for_a_full_receiver() {
    char path[64];
    std::snprintf(path, sizeof path, "@ums-io-test-full-%d", ::getpid());
    const endpoint at = endpoint::unix_socket(path).value();
    ums::net::datagram receiver{at}, sender = ums::net::datagram::open(AF_UNIX).value();
    std::size_t queued = 0;
    while (::sendto(sender.fd(), "x", 1, MSG_DONTWAIT, at.data(), at.size()) == 1) ++queued;
    const rescue end{[&] { ::shutdown(receiver.fd(), SHUT_RDWR); }};
    EXPECT_EQ(sender.send_to("y", 1, at, deadline_after(1ms)).error(), std::errc::timed_out);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(sender.send_to("y", 1, at, stop.get_token()).error(), std::errc::operation_canceled);
    std::size_t sent = 0;
    std::jthread more{[&] {
        iovec piece{const_cast<char*>("y"), 1};
        mmsghdr message{};
        message.msg_hdr.msg_name = const_cast<sockaddr*>(at.data());
        message.msg_hdr.msg_namelen = at.size();
        message.msg_hdr.msg_iov = &piece;
        message.msg_hdr.msg_iovlen = 1;
        for (int i = 0; i < 20; ++i) {
            sent += sender.send_to("y", 1, at).value();
            sent += io::sendmsg(sender.fd(), &message.msg_hdr).value();
            sent += io::sendmmsg(sender.fd(), &message, 1).value();
        }
    }};
    char c;
    for (std::size_t i = 0; i < queued + 60; ++i) {
        EXPECT_EQ(receiver.receive(&c, 1).value(), 1u);
        EXPECT_EQ(c, i < queued ? 'x' : 'y');
    }
    more.join();
    EXPECT_EQ(sent, 60u);
    while (::sendto(sender.fd(), "x", 1, MSG_DONTWAIT, at.data(), at.size()) == 1) continue;
    const int fd = sender.fd();
    std::jthread closer{[&] { sender.close().value(); }};
    const auto last = io::sendto(fd, "y", 1, 0, at.data(), at.size());
    EXPECT_FALSE(last);
}

TEST_F(io_test, a_message_to_a_full_unix_socket_waits_for_room) {
    // The waiter that runs after the close must find the number unused, and a carrier that a
    // detector's hand-off adds would take it.
    for (const unsigned processors : {1u, 2u})
        ums::run({.processors = processors, .block = ums::block_detection::off},
                 wait_for_a_full_receiver);
    wait_for_a_full_receiver();
    const ums::runtime started{{.block = ums::block_detection::off}};
    wait_for_a_full_receiver();
}

TEST_F(io_test, messages_keep_their_boundaries) {
    on_a_fiber_and_on_a_thread([] {
        ums::net::datagram a{endpoint::loopback(0)}, b{endpoint::loopback(0)};
        const endpoint at = b.local().value();
        fiber writer{[&] {
            yield_often();
            for (const char* text : {"one", "three", ""})
                EXPECT_EQ(a.send_to(text, std::strlen(text), at).value(), std::strlen(text));
        }};
        char buffer[16];
        endpoint from;
        EXPECT_EQ(b.receive(buffer, sizeof buffer, &from).value(), 3u);
        EXPECT_EQ(from, a.local().value());
        EXPECT_EQ(b.receive(buffer, sizeof buffer).value(), 5u);
        EXPECT_EQ(b.receive(buffer, sizeof buffer).value(), 0u);
        writer.join();
        EXPECT_EQ(b.receive(buffer, sizeof buffer, nullptr, deadline_after(1ms)).error(),
                  std::errc::timed_out);
        std::array<mmsghdr, 3> many{};
        std::array<iovec, 3> pieces{};
        char texts[3][8];
        for (int i = 0; i < 3; ++i) {
            pieces[i] = {texts[i], sizeof texts[i]};
            many[i].msg_hdr.msg_iov = &pieces[i];
            many[i].msg_hdr.msg_iovlen = 1;
        }
        a.connect(at).value();
        EXPECT_EQ(io::sendmmsg(a.fd(), many.data(), 3).value(), 3u);
        // A busy machine delivers them one by one.
        for (std::size_t got = 0; got < 3;)
            got += io::recvmmsg(b.fd(), many.data() + got, 3 - got).value();
    });
}

// A short read of a stream says that it is empty, but not if it was hung up before.
TEST_F(io_test, the_end_that_came_with_the_last_bytes_is_seen) {
    on_a_fiber_and_on_a_thread([] {
        listener door{endpoint::loopback(0)};
        const endpoint at = door.local().value();
        for (int round = 0; round < scaled(300, 50); ++round) {
            stream s = stream::connect(at).value();
            stream t = door.accept().value();
            char buffer[100];
            // This registers it.
            EXPECT_FALSE(
                t.read(buffer, sizeof buffer, deadline_after(round % 2 == 0 ? 0us : 20us)));
            s.write_all("bytes").value();
            s.close();
            if (round % 3 == 0) this_fiber::sleep_for(20us);
            EXPECT_EQ(t.read(buffer, sizeof buffer).value(), 5u);
            EXPECT_EQ(t.read(buffer, sizeof buffer).value(), 0u);
            EXPECT_EQ(t.read(buffer, sizeof buffer).value(), 0u);
        }
    });
}

TEST_F(io_test, the_end_of_a_pipe_or_pair_that_came_with_the_last_bytes_is_seen) {
    on_a_fiber_and_on_a_thread([] {
        for (int round = 0; round < scaled(300, 50); ++round) {
            int ends[2];
            if (round % 2 == 0)
                io::pipe(ends).value();
            else
                io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
            char buffer[100];
            EXPECT_FALSE(
                io::read(ends[0], buffer, 100, deadline_after(round % 4 < 2 ? 0us : 20us)));
            io::write_all(ends[1], "bytes", 5).value();
            if (round % 5 == 0) {
                EXPECT_EQ(io::read(ends[0], buffer, 2).value(), 2u);
            }
            io::close(ends[1]);
            if (round % 3 == 0) this_fiber::sleep_for(20us);
            EXPECT_EQ(io::read(ends[0], buffer, 100).value(), round % 5 == 0 ? 3u : 5u);
            EXPECT_EQ(io::read(ends[0], buffer, 100).value(), 0u);
            io::close(ends[0]);
        }
    });
}

// The read ends there, although more is behind it.
TEST_F(io_test, what_lies_behind_a_message_with_descriptors_is_read) {
    on_a_fiber_and_on_a_thread([] {
        for (const bool by_recv : {true, false}) {
            auto [here, there] = stream::pair().value();
            char buffer[100];
            const auto read = [&, fd = here.fd()] {
                return by_recv ? io::recv(fd, buffer, 100, 0, deadline_after(20s))
                               : io::read(fd, buffer, 100, deadline_after(20s));
            };
            EXPECT_FALSE(here.read(buffer, 100, deadline_after(1ms)));  // This registers it.
            for (int round = 0; round < 3; ++round) {
                alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
                char text[] = "with";
                iovec piece{text, 4};
                msghdr message{};
                message.msg_iov = &piece;
                message.msg_iovlen = 1;
                message.msg_control = control;
                message.msg_controllen = sizeof control;
                cmsghdr* const head = CMSG_FIRSTHDR(&message);
                head->cmsg_level = SOL_SOCKET;
                head->cmsg_type = SCM_RIGHTS;
                head->cmsg_len = CMSG_LEN(sizeof(int));
                const int passed = there.fd();
                std::memcpy(CMSG_DATA(head), &passed, sizeof passed);
                EXPECT_EQ(io::sendmsg(there.fd(), &message).value(), 4u);
                there.write_all("more").value();
                EXPECT_EQ(read().value(), 4u);
                EXPECT_EQ(read().value(), 4u);
                EXPECT_EQ(std::string(buffer, 4), "more");
            }
        }
    });
}

// The kernel gives a byte of urgent data out of the order, and ends a read before it.
TEST_F(io_test, what_lies_behind_urgent_data_of_a_unix_stream_is_read) {
    on_a_fiber_and_on_a_thread([] {
        auto [here, there] = stream::pair().value();
        char buffer[100];
        EXPECT_FALSE(here.read(buffer, 100, deadline_after(1ms)));
        there.write_all("ab").value();
        const auto sent = io::send(there.fd(), "!", 1, MSG_OOB);
        if (!sent) GTEST_SKIP() << "Unix sockets have no urgent data here";
        there.write_all("cd").value();
        std::string all;
        while (all.size() < 4)
            all.append(buffer, here.read(buffer, 100, deadline_after(20s)).value());
        EXPECT_EQ(all, "abcd");
    });
}

TEST_F(io_test, peeked_bytes_are_still_there) {
    on_a_fiber_and_on_a_thread([] {
        listener door{endpoint::loopback(0)};
        stream s = stream::connect(door.local().value()).value();
        stream t = door.accept().value();
        char buffer[100];
        EXPECT_FALSE(t.read(buffer, sizeof buffer, deadline_after(1ms)));
        s.write_all("bytes").value();
        EXPECT_EQ(io::recv(t.fd(), buffer, 100, MSG_PEEK).value(), 5u);
        EXPECT_EQ(io::recv(t.fd(), buffer, 100, MSG_PEEK).value(), 5u);
        EXPECT_EQ(io::poll(t.fd(), POLLIN).value(), POLLIN);
        EXPECT_EQ(io::recv(t.fd(), buffer, 2).value(), 2u);
        EXPECT_EQ(io::recv(t.fd(), buffer, 100).value(), 3u);
        fiber writer{[&] {
            yield_often();
            s.write_all("12").value();
            yield_often();
            s.write_all("345").value();
        }};
        EXPECT_EQ(io::recv(t.fd(), buffer, 5, MSG_WAITALL).value(), 5u);
        writer.join();
    });
}

TEST_F(io_test, urgent_data_does_not_hide_what_follows) {
    ums::run({.processors = 1}, [] {
        listener door{endpoint::loopback(0)};
        stream s = stream::connect(door.local().value()).value();
        stream t = door.accept().value();
        char buffer[100];
        EXPECT_FALSE(t.read(buffer, sizeof buffer, deadline_after(1ms)));
        s.write_all("ab").value();
        EXPECT_EQ(io::send(s.fd(), "!", 1, MSG_OOB).value(), 1u);
        s.write_all("cd").value();
        std::string all;
        while (all.size() < 4) all.append(buffer, t.read(buffer, sizeof buffer).value());
        EXPECT_EQ(all, "abcd");
    });
}

// EMFILE in accept() must neither fail nor burn the CPU, nor lose the connection.
TEST_F(io_test, at_the_limit_of_descriptors_accept_waits_for_one) {
    // No detector: it opens a file for the moment of each look, whose number would be free below.
    ums::run({.processors = 2, .block = ums::block_detection::off}, [] {
        listener door{endpoint::loopback(0)};
        stream s = stream::connect(door.local().value()).value();
        char c;
        pipe_ends spare;
        EXPECT_FALSE(io::read(spare.in, &c, 1, deadline_after(1ms)));  // Makes the engine.
        rlimit before{};
        getrlimit(RLIMIT_NOFILE, &before);
        int top = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        const rlimit low{static_cast<rlim_t>(top + 1), before.rlim_max};
        ::close(top);
        // Use up what is left below the limit.
        setrlimit(RLIMIT_NOFILE, &low);
        std::vector<int> fill;
        for (int fd; (fd = ::dup(0)) >= 0;) fill.push_back(fd);
        EXPECT_EQ(door.accept(deadline_after(1ms)).error(), std::errc::timed_out);
        std::stop_source source;
        fiber stopper{[&] { source.request_stop(); }};
        EXPECT_EQ(door.accept(source.get_token()).error(), std::errc::operation_canceled);
        stopper.join();
        fiber closer{[&] {
            yield_often();
            spare.close_in();
        }};
        stream t = door.accept().value();
        EXPECT_TRUE(t.is_open());
        closer.join();
        setrlimit(RLIMIT_NOFILE, &before);
        for (const int fd : fill) ::close(fd);
    });
}

TEST_F(io_test, a_close_ends_an_accept_at_the_limit_of_descriptors) {
    // No detector: a carrier that its hand-off adds would take the number.
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        make_the_engine();
        int door = io::socket(AF_INET, SOCK_STREAM).value();
        endpoint at = endpoint::loopback(0);
        ASSERT_EQ(::bind(door, at.data(), at.size()), 0);
        ASSERT_EQ(::listen(door, 5), 0);
        socklen_t bytes = endpoint::capacity;
        ASSERT_EQ(::getsockname(door, at.data(), &bytes), 0);
        stream s = stream::connect(at).value();
        rlimit before{};
        getrlimit(RLIMIT_NOFILE, &before);
        const int top = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        const rlimit low{static_cast<rlim_t>(top + 1), before.rlim_max};
        ::close(top);
        setrlimit(RLIMIT_NOFILE, &low);
        std::vector<int> fill;
        for (int fd; (fd = ::dup(0)) >= 0;) fill.push_back(fd);
        fiber acceptor{[&, fd = door] {
            EXPECT_EQ(io::accept(fd, nullptr, nullptr, deadline_after(20s)).error(),
                      std::errc::bad_file_descriptor);
        }};
        until_waits(acceptor);
        io::close(door);
        const int next = io::socket(AF_INET, SOCK_STREAM).value();
        EXPECT_EQ(next, door);
        acceptor.join();
        setrlimit(RLIMIT_NOFILE, &before);
        io::close(next);
        for (const int fd : fill) ::close(fd);
    });
}

TEST_F(io_test, a_close_that_lingers_holds_up_nobody) {
    // No detector: it would hand the processor off.
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        listener door{endpoint::loopback(0)};
        stream client = stream::connect(door.local().value()).value();
        stream peer = door.accept().value();
        const std::vector<char> much(16u << 20, 'x');
        std::size_t sent = 0;
        while (const auto n = client.write(much.data(), much.size(), ums::deadline{})) sent += *n;
        const linger long_time{1, 20};
        ASSERT_EQ(::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time),
                  0);
        const int number = client.fd();
        std::atomic<bool> is_over = false;
        fiber closer{[&] {
            EXPECT_TRUE(client.close());
            is_over = true;
        }};
        until_waits(closer);
        EXPECT_FALSE(is_over.load());
        const int next = io::socket(AF_INET, SOCK_STREAM).value();
        EXPECT_EQ(next, number);
        std::vector<char> buffer(sent);
        EXPECT_TRUE(peer.read_all(buffer.data(), sent));
        EXPECT_EQ(peer.read(buffer.data(), 1).value(), 0u);
        closer.join();
        io::close(next);
    });
}

TEST_F(io_test, a_connect_to_a_full_unix_socket_waits_for_room) {
    ums::run({.processors = 2}, [] {
        char path[64];
        std::snprintf(path, sizeof path, "@ums-io-test-%d", ::getpid());
        listener door{endpoint::unix_socket(path).value(), {.backlog = 1}};
        const endpoint at = door.local().value();
        std::vector<stream> waiting;
        for (int i = 0; i < 2; ++i) waiting.push_back(stream::connect(at).value());
        EXPECT_EQ(stream::connect(at, deadline_after(5ms)).error(), std::errc::timed_out);
        fiber one_more{[&] { EXPECT_TRUE(stream::connect(at)); }};
        until_waits(one_more);
        std::vector<stream> got;
        for (int i = 0; i < 3; ++i) got.push_back(door.accept().value());
        one_more.join();
    });
}

TEST_F(io_test, resolve_knows_this_host) {
    on_a_fiber_and_on_a_thread([] {
        const auto found = ums::net::resolve("127.0.0.1", "80");
        ASSERT_TRUE(found) << found.error.message();
        EXPECT_EQ(found.value().front(), endpoint::loopback(80));
        using namespace std::string_view_literals;
        for (const std::string_view host : {"not a name"sv, "127.0.0.1\0.example.org"sv})
            EXPECT_EQ(ums::net::resolve(host, "80").error.category(), ums::net::resolve_category());
        EXPECT_FALSE(ums::net::resolve("127.0.0.1", "80\0 0"sv));
    });
}

TEST_F(io_test, addresses_are_read_and_written) {
    for (const char* text :
         {"127.0.0.1:80", "[::1]:8080", "0.0.0.0:0", "[::]:65535", "unix:/tmp/x", "unix:@abstract"})
        EXPECT_EQ(endpoint::parse(text).value().text(), text);
    EXPECT_EQ(endpoint::parse(":80").value(), endpoint::any_ipv6(80));
    for (const char* text : {"", "80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80",
                             "[::1]", "[127.0.0.1]:80", "localhost:80", "unix:", "1.2.3:4"})
        EXPECT_EQ(endpoint::parse(text).error(), std::errc::invalid_argument) << text;
    using namespace std::string_view_literals;
    for (const std::string_view text : {"127.0.0.1\0:80"sv, "[::1\0]:80"sv, "unix:/tmp/x\0y"sv})
        EXPECT_EQ(endpoint::parse(text).error(), std::errc::invalid_argument) << text;
    EXPECT_EQ(endpoint::unix_socket(std::string(108, 'x')).error(), std::errc::filename_too_long);
}

TEST_F(io_test, offloaded_calls_run_beside_the_fibers) {
    ums::run({.processors = 1}, [] {
        pipe_ends p;
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        std::vector<fiber> all;
        for (int i = 0; i < 10; ++i)
            all.emplace_back([&] {
                const char c = ums::offload([&] {
                    char got = 0;
                    EXPECT_EQ(::read(ends[0], &got, 1), 1);  // Truly blocks.
                    return got;
                });
                EXPECT_EQ(c, 'x');
            });
        yield_often();
        for (int i = 0; i < 10; ++i) ASSERT_EQ(::write(ends[1], "x", 1), 1);
        for (fiber& f : all) f.join();
        EXPECT_EQ(ums::offload_stats().calls, 10u);
        EXPECT_LE(ums::offload_stats().threads, 10u);
        EXPECT_THROW(ums::offload([] { throw std::runtime_error{"x"}; }), std::runtime_error);
        ::close(ends[0]);
        ::close(ends[1]);
    });
    EXPECT_EQ(ums::offload([] { return 7; }), 7);
}

TEST_F(io_test, without_a_runtime_a_plain_thread_waits_as_well) {
    pipe_ends p;
    char c;
    EXPECT_EQ(io::read(p.in, &c, 1, deadline_after(1ms)).error(), std::errc::timed_out);
    std::stop_source source;
    std::thread stopper{[&] { source.request_stop(); }};
    EXPECT_EQ(io::read(p.in, &c, 1, source.get_token()).error(), std::errc::operation_canceled);
    stopper.join();
    std::thread writer{[&] { io::write_all(p.out, "x", 1).value(); }};
    EXPECT_EQ(io::read(p.in, &c, 1).value(), 1u);
    writer.join();
}

TEST_F(io_test, without_a_runtime_a_close_ends_the_wait_of_a_plain_thread) {
    for (int i = 0; i < scaled(100, 20); ++i) {
        auto [here, there] = stream::pair().value();
        const int fd = here.fd();
        const rescue end{[fd = there.fd()] { ::shutdown(fd, SHUT_RDWR); }};
        std::atomic<bool> begins = false;
        std::thread closer{[&, &mine = here] {
            begins.wait(false);
            for (int k = 0; k < i; ++k) std::this_thread::yield();
            mine.close().value();
        }};
        begins = true;
        begins.notify_one();
        char c;
        EXPECT_EQ(io::read(fd, &c, 1).error(), std::errc::bad_file_descriptor);
        closer.join();
    }
}

// Waits for more than the bytes that are there, while poll(2) says that there is something to read.
TEST_F(io_test, without_a_runtime_the_limits_end_a_wait_for_more_than_what_is_ready) {
    auto [here, there] = stream::pair().value();
    const int behind = 1;
    ASSERT_EQ(::setsockopt(here.fd(), SOL_SOCKET, SO_PEEK_OFF, &behind, sizeof behind), 0);
    there.write_all("x").value();
    const rescue end{[fd = there.fd()] { ::shutdown(fd, SHUT_RDWR); }};
    char c;
    EXPECT_EQ(io::recv(here.fd(), &c, 1, MSG_PEEK, deadline_after(1ms)).error(),
              std::errc::timed_out);
    std::stop_source source;
    std::thread stopper{[&] { source.request_stop(); }};
    EXPECT_EQ(io::recv(here.fd(), &c, 1, MSG_PEEK, source.get_token()).error(),
              std::errc::operation_canceled);
    stopper.join();
    EXPECT_TRUE(io::wait_readable(here.fd(), ums::deadline{}));
    EXPECT_TRUE(has_byte(here.fd()));
}

TEST_F(io_test, a_plain_thread_that_waits_outlives_the_runtime) {
    pipe_ends p;
    std::thread reader;
    for (int i = 0; i < scaled(50, 10); ++i) {
        char c = 0;
        ums::run({.processors = 1}, [&] {
            char d;
            EXPECT_FALSE(io::read(p.in, &d, 1, deadline_after(10us)));
            reader = std::thread{[&] { EXPECT_EQ(io::read(p.in, &c, 1).value(), 1u); }};
            if (i % 2 == 0) this_fiber::sleep_for(50us);
        });
        io::write_all(p.out, "x", 1).value();
        reader.join();
    }
}

}  // namespace
