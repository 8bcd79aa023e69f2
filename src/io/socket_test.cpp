// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstring>
#include <functional>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "ums/ums.hpp"

namespace {

using namespace std::chrono_literals;
using namespace ums;

class socket_test : public conserving_test {};

// The two ends of a TCP connection.
struct connection {
    net::stream here, there;
    connection() {
        net::listener door{net::endpoint::loopback(0)};
        here = net::stream::connect(door.local().value()).value();
        there = door.accept().value();
    }
};

void reset(net::stream& s) {
    const linger at_once{1, 0};
    ASSERT_EQ(::setsockopt(s.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    s.close().value();
}

// Receives ten bytes of a hundred; then the peer resets the connection.
void receive_a_part(int fd, net::stream& peer) {
    peer.write_all("0123456789").value();
    fiber closer{[&] {
        int unread = 10;  // Then it has taken the ten and waits for the rest, or is about to.
        while (unread != 0) {
            this_fiber::yield();
            ASSERT_EQ(::ioctl(fd, FIONREAD, &unread), 0);
        }
        reset(peer);
    }};
    char into[100];
    EXPECT_EQ(io::recv(fd, into, sizeof into, MSG_WAITALL).value(), 10u);
    closer.join();
}

TEST_F(socket_test, an_error_that_ends_a_receive_of_all_comes_with_the_next_operation) {
    using operation = std::function<std::error_code(int)>;
    char c = 0;
    iovec one{&c, 1};
    msghdr message{};
    message.msg_iov = &one;
    message.msg_iovlen = 1;
    const std::vector<operation> all = {
        [&](int fd) { return io::recv(fd, &c, 1).error(); },
        [&](int fd) { return io::recv(fd, &c, 1, MSG_WAITALL).error(); },
        [&](int fd) { return io::read(fd, &c, 1).error(); },
        [&](int fd) { return io::readv(fd, &one, 1).error(); },
        [&](int fd) { return io::recvmsg(fd, &message).error(); },
        [&](int fd) { return io::send(fd, &c, 1).error(); },
        [&](int fd) { return io::write(fd, &c, 1).error(); },
        [&](int fd) { return io::sendmsg(fd, &message).error(); },
    };
    on_a_fiber_and_on_a_thread([&] {
        for (const operation& next : all)
            for (const bool is_kept : {true, false}) {
                connection c2;
                const int fd = is_kept ? c2.here.fd() : c2.here.release();
                receive_a_part(fd, c2.there);
                // Looking takes nothing away.
                EXPECT_TRUE(io::wait_readable(fd));
                EXPECT_NE(io::poll(fd, POLLIN).value() & POLLERR, 0);
                EXPECT_EQ(next(fd), std::errc::connection_reset) << &next - all.data();
                EXPECT_EQ(io::recv(fd, &c, 1).value(), 0u);
                if (!is_kept) io::close(fd).value();
            }
    });
}

TEST_F(socket_test, the_error_is_not_one_of_the_numbers_next_file) {
    on_a_fiber_and_on_a_thread([] {
        for (const bool by_libums : {true, false}) {
            connection c;
            const int fd = c.here.release();
            receive_a_part(fd, c.there);
            if (by_libums) io::close(fd).value();
            int ends[2];
            ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
            if (ends[1] == fd) std::swap(ends[0], ends[1]);
            ASSERT_EQ(::dup2(ends[0], fd), fd);
            ASSERT_EQ(::write(ends[1], "x", 1), 1);
            char into;
            EXPECT_EQ(io::recv(fd, &into, 1).value(), 1u);
            if (ends[0] != fd) ::close(ends[0]);
            ::close(ends[1]);
            io::close(fd).value();
        }
    });
}

TEST_F(socket_test, the_end_of_the_limits_is_no_error_of_the_next_operation) {
    on_a_fiber_and_on_a_thread([] {
        connection c;
        c.there.write_all("01234").value();
        char into[100];
        EXPECT_EQ(io::recv(c.here.fd(), into, 100, MSG_WAITALL, deadline_after(1ms)).value(), 5u);
        c.there.write_all("x").value();
        EXPECT_EQ(io::recv(c.here.fd(), into, 100).value(), 1u);
    });
}

}  // namespace
