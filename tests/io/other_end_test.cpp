// SPDX-License-Identifier: MIT
// variants: migrate p1 fifo
//
// Pipes and socket pairs that io:: makes: a write through one end wakes the fiber that waits at the
// other (src/io/wait/descriptor.hpp). This is a hint: whatever becomes of the two numbers, no byte
// is lost, and no waiter of another file is told.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/waiting.hpp"
#include "ums/child.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/io.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::deadline_after;
using ums::fiber;
namespace io = ums::io;
namespace this_fiber = ums::this_fiber;

class other_end_test : public conserving_test {};

enum class kind { pipe, stream, packets };
constexpr kind all_kinds[] = {kind::pipe, kind::stream, kind::packets};

struct two_ends {
    explicit two_ends(kind of) {
        int made[2];
        if (of == kind::pipe)
            io::pipe(made).value();
        else
            io::socketpair(AF_UNIX, of == kind::stream ? SOCK_STREAM : SOCK_SEQPACKET, 0, made)
                .value();
        in = made[0];
        out = made[1];
    }
    ~two_ends() {
        for (const int fd : {in, out})
            if (fd >= 0) io::close(fd).value();
    }
    two_ends(const two_ends&) = delete;
    two_ends& operator=(const two_ends&) = delete;

    int in, out;
};

// Whether a fiber that waits there reads the byte that is written here.
bool carries(int in, int out) {
    char c = 0;
    fiber reader{[&] {
        if (io::read(in, &c, 1).value_or(0) != 1) c = 0;
    }};
    until_waits(reader);
    const bool is_written = io::write(out, "x", 1).value_or(0) == 1;
    reader.join();
    return is_written && c == 'x';
}

char byte_of(int fd) {
    char c = 0;
    return io::read(fd, &c, 1).value_or(0) == 1 ? c : '?';
}

// A fiber that waits until a descriptor is readable.
class waiter {
public:
    explicit waiter(int fd)
        : fiber_{[this, fd] {
              io::wait_readable(fd).value();
              is_told_ = true;
          }} {
        until_waits(fiber_);
    }
    // After all that is ready on this processor has run.
    [[nodiscard]] bool is_told() const {
        for (int i = 0; i < 5; ++i) this_fiber::yield();
        return is_told_;
    }
    void join() { fiber_.join(); }

private:
    std::atomic<bool> is_told_ = false;
    fiber fiber_;
};

TEST_F(other_end_test, a_reader_that_waits_gets_what_is_written) {
    on_a_fiber_and_on_a_thread([] {
        for (const kind of : all_kinds) {
            const two_ends ends{of};
            for (int i = 0; i < 20; ++i) EXPECT_TRUE(carries(ends.in, ends.out));
            for (int i = 0; i < 20 && of != kind::pipe; ++i)
                EXPECT_TRUE(carries(ends.out, ends.in));
        }
    });
}

// A duplicate keeps the file of the end open.
TEST_F(other_end_test, the_number_of_an_end_may_get_another_file) {
    ums::run(one_processor, [] {
        for (const kind of : all_kinds) {
            for (int round = 0; round < 5; ++round) {
                two_ends old{of};
                EXPECT_TRUE(carries(old.in, old.out));
                const int kept = io::dup(old.in).value();
                const int number = std::exchange(old.in, -1);
                io::close(number).value();
                const two_ends next{of};
                ASSERT_EQ(next.in, number);
                waiter w{next.in};
                EXPECT_EQ(io::write(old.out, "o", 1).value(), 1u);
                EXPECT_FALSE(w.is_told());
                EXPECT_EQ(io::write(next.out, "n", 1).value(), 1u);
                w.join();
                EXPECT_EQ(byte_of(next.in), 'n');
                EXPECT_EQ(byte_of(kept), 'o');
                io::close(kept).value();
            }
        }
    });
}

TEST_F(other_end_test, duplicates_carry_as_well) {
    on_a_fiber_and_on_a_thread([] {
        for (const kind of : all_kinds) {
            const two_ends ends{of};
            const int in = io::dup(ends.in).value(), out = io::dup(ends.out).value();
            for (int i = 0; i < 5; ++i) {
                EXPECT_TRUE(carries(ends.in, out));
                EXPECT_TRUE(carries(in, ends.out));
                EXPECT_TRUE(carries(in, out));
            }
            for (const int fd : {in, out}) io::close(fd).value();
            EXPECT_TRUE(carries(ends.in, ends.out));
        }
    });
}

TEST_F(other_end_test, an_end_that_was_forgotten_carries_as_well) {
    on_a_fiber_and_on_a_thread([] {
        for (const kind of : all_kinds) {
            for (const bool forgets_in : {true, false}) {
                const two_ends ends{of};
                EXPECT_TRUE(carries(ends.in, ends.out));
                const int forgotten = forgets_in ? ends.in : ends.out;
                io::forget(forgotten);
                for (int i = 0; i < 5; ++i) EXPECT_TRUE(carries(ends.in, ends.out));
                io::adopt(forgotten).value();
                for (int i = 0; i < 5; ++i) EXPECT_TRUE(carries(ends.in, ends.out));
            }
        }
    });
}

// Passes a descriptor through a pair of sockets, and returns its new number.
int passed(int fd) {
    const two_ends through{kind::stream};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    char c = 0;
    iovec piece{&c, 1};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    io::sendmsg(through.out, &message).value();
    io::recvmsg(through.in, &message, MSG_CMSG_CLOEXEC).value();
    int number = -1;
    std::memcpy(&number, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof number);
    return number;
}

TEST_F(other_end_test, an_end_that_was_passed_carries_as_well) {
    on_a_fiber_and_on_a_thread([] {
        for (const kind of : all_kinds) {
            two_ends ends{of};
            const int out = passed(ends.out);
            for (int i = 0; i < 5; ++i) {
                EXPECT_TRUE(carries(ends.in, out));
                EXPECT_TRUE(carries(ends.in, ends.out));
            }
            io::close(std::exchange(ends.out, -1)).value();
            EXPECT_TRUE(carries(ends.in, out));
            io::close(out).value();
        }
    });
}

TEST_F(other_end_test, a_child_writes_to_its_parent_and_among_its_own_fibers) {
    if (under_tsan)
        GTEST_SKIP() << "ThreadSanitizer's runtime cannot go on in the child of a fork()";
    ums::run({.processors = 2}, [] {
        for (const kind of : all_kinds) {
            const two_ends ends{of}, inner{of};
            EXPECT_TRUE(carries(ends.in, ends.out) && carries(inner.in, inner.out));
            char c = 0;
            fiber reader{[&] { EXPECT_EQ(io::read(ends.in, &c, 1).value(), 1u); }};
            until_waits(reader);
            const pid_t child = ::fork();
            if (child == 0) {
                for (int i = 0; i < 5; ++i)
                    if (!carries(inner.in, inner.out)) ::_exit(1);
                ::_exit(io::write(ends.out, "c", 1).value_or(0) == 1 ? 0 : 2);
            }
            reader.join();
            EXPECT_EQ(c, 'c');
            EXPECT_EQ(ums::wait_child(child).value(), 0);
            EXPECT_TRUE(carries(ends.in, ends.out) && carries(inner.in, inner.out));
        }
    });
}

// It sends to another one from then on.
TEST_F(other_end_test, a_datagram_socket_of_a_pair_may_be_connected_elsewhere) {
    ums::run(one_processor, [] {
        int pair[2];
        io::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair).value();
        const int other = io::socket(AF_UNIX, SOCK_DGRAM).value();
        sockaddr_un name{AF_UNIX, {}};
        socklen_t bytes = sizeof name.sun_family;
        ASSERT_EQ(::bind(other, reinterpret_cast<const sockaddr*>(&name), bytes), 0);
        bytes = sizeof name;
        ASSERT_EQ(::getsockname(other, reinterpret_cast<sockaddr*>(&name), &bytes), 0);
        io::connect(pair[0], reinterpret_cast<const sockaddr*>(&name), bytes).value();
        int error = 0;
        bytes = sizeof error;  // The kernel tells the one that is left.
        ASSERT_EQ(::getsockopt(pair[1], SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
        while (io::wait_readable(pair[1], ums::deadline{})) byte_of(pair[1]);
        waiter w{pair[1]};
        EXPECT_EQ(io::send(pair[0], "x", 1).value(), 1u);
        EXPECT_EQ(byte_of(other), 'x');
        EXPECT_FALSE(w.is_told());
        io::shutdown(pair[1], SHUT_RD).value();
        w.join();
        for (const int fd : {pair[0], pair[1], other}) io::close(fd).value();
    });
}

TEST_F(other_end_test, two_clusters_send_to_and_fro) {
    ums::run({.processors = 1}, [] {
        ums::cluster second{{.name = "second"}};
        for (const kind of : all_kinds) {
            const two_ends there{of}, back{of};
            const int rounds = scaled(500, 100);
            fiber echo{{.cluster = &second}, [&] {
                           for (int i = 0; i < rounds; ++i) {
                               const char c = byte_of(there.in);
                               io::write(back.out, &c, 1).value();
                           }
                       }};
            for (int i = 0; i < rounds; ++i) {
                const char c = static_cast<char>('a' + i % 26);
                io::write(there.out, &c, 1).value();
                EXPECT_EQ(byte_of(back.in), c);
            }
            echo.join();
        }
    });
}

// Fibers of two clusters and a plain thread write; others of each kind read, with and without
// limits, some through a duplicate.
TEST_F(other_end_test, every_byte_is_read_once) {
    std::mt19937_64 seeds{test_seed()};
    ums::run({.processors = 2}, [&] {
        ums::cluster second{{.name = "second"}};
        for (int round = 0; round < scaled(60, 12); ++round) {
            const kind of = all_kinds[round % 3];
            two_ends ends{of};
            const int duplicate = io::dup(ends.in).value();
            std::atomic<std::size_t> written = 0, read = 0;
            const auto write = [&](std::uint64_t seed) {
                std::mt19937_64 random{seed};
                for (int i = 0; i < scaled(300, 60); ++i) {
                    written += io::write(ends.out, "xyz", 1 + random() % 3).value();
                    if (random() % 4 == 0) this_fiber::yield();
                }
            };
            const auto read_all = [&](std::uint64_t seed) {
                std::mt19937_64 random{seed};
                for (;;) {
                    const int in = random() % 2 == 0 ? ends.in : duplicate;
                    const auto limit = random() % 2 == 0 ? ums::deadline::max()
                                                         : deadline_after(random() % 50 * 1us);
                    if (random() % 4 == 0 && !io::wait_readable(in, limit)) continue;
                    char buffer[4];
                    const std::size_t wanted = of == kind::packets ? 4 : 1 + random() % 4;
                    const auto n = io::read(in, buffer, wanted, limit);
                    if (!n) {
                        EXPECT_EQ(n.error(), std::errc::timed_out);
                    } else if (*n == 0) {
                        return;
                    } else {
                        read += *n;
                    }
                }
            };
            std::vector<fiber> readers, writers;
            plain_thread reading{read_all, seeds()}, writing{write, seeds()};
            for (ums::cluster* const home : {static_cast<ums::cluster*>(nullptr), &second}) {
                readers.emplace_back(ums::fiber_options{.cluster = home}, read_all, seeds());
                writers.emplace_back(ums::fiber_options{.cluster = home}, write, seeds());
            }
            for (fiber& f : writers) f.join();
            writing.join();
            io::close(std::exchange(ends.out, -1)).value();
            for (fiber& f : readers) f.join();
            reading.join();
            EXPECT_EQ(read, written);
            io::close(duplicate).value();
        }
    });
}

// No detector: for a look into /proc it would take the number that is closed, and used once more.
TEST_F(other_end_test, either_end_is_closed_in_the_midst) {
    ums::run({.processors = 2, .block = ums::block_detection::off}, [] {
        for (int round = 0; round < scaled(600, 100); ++round) {
            two_ends ends{all_kinds[round % 3]};
            std::atomic<int> begun = 0;
            fiber reader{[&, fd = ends.in] {
                char c;
                do ++begun;
                while (io::read(fd, &c, 1).value_or(0) == 1);
            }};
            fiber writer{[&, fd = ends.out] {
                while (io::write(fd, "x", 1))
                    if (++begun % 8 == 0) this_fiber::yield();
            }};
            yield_until([&] { return begun > round % 7 * 3; });
            int& closed = round % 2 == 0 ? ends.in : ends.out;
            io::close(std::exchange(closed, -1)).value();
            reader.join();
            writer.join();
        }
    });
}

}  // namespace
