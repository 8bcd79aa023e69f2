// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/stream.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/listener.hpp"
#include "ums/ums.hpp"

namespace {

using namespace std::chrono_literals;
using ums::deadline_after;
using ums::fiber;
using ums::net::endpoint;
using ums::net::listener;
using ums::net::stream;

class stream_test : public conserving_test {};

std::string text(char c, std::size_t n) { return std::string(n, c); }

TEST_F(stream_test, what_is_written_at_one_end_is_read_at_the_other) {
    on_a_fiber_and_on_a_thread([] {
        auto [a, b] = stream::pair().value();
        a.write_all("hello").value();
        char buffer[16];
        EXPECT_EQ(b.read(buffer, sizeof buffer).value(), 5u);
        EXPECT_EQ(std::string(buffer, 5), "hello");
    });
}

// Like io::write() and io::write_all().
TEST_F(stream_test, a_write_takes_what_there_is_room_for_and_write_all_takes_all) {
    ums::run({.processors = 2}, [] {
        auto [a, b] = stream::pair().value();
        const std::vector<char> much(4u << 20, 'x');
        const std::size_t part = a.write(much.data(), much.size()).value();
        EXPECT_GT(part, 0u);
        EXPECT_LT(part, much.size());
        fiber writer{[&, &from = a] { from.write_all(much.data(), much.size()).value(); }};
        std::vector<char> got(part + much.size());
        b.read_all(got.data(), got.size()).value();
        writer.join();
        EXPECT_EQ(a.write("abc").value(), 3u);
    });
}

TEST_F(stream_test, a_reader_waits_for_the_writer_and_then_for_the_end) {
    on_a_fiber_and_on_a_thread([] {
        auto [a, b] = stream::pair().value();
        fiber writer{[&end = a] {
            for (int i = 0; i < scaled(500, 100); ++i) {
                end.write_all("x").value();
                ums::this_fiber::yield();
            }
            end.close();
        }};
        char buffer[16];
        std::size_t sum = 0;
        for (;;) {
            const std::size_t n = b.read(buffer, sizeof buffer).value();
            if (n == 0) break;
            sum += n;
        }
        EXPECT_EQ(sum, std::size_t(scaled(500, 100)));
        writer.join();
    });
}

void echo(stream s) {
    char buffer[1024];
    for (;;) {
        const auto n = s.read(buffer, sizeof buffer);
        if (!n || *n == 0) return;
        if (!s.write_all(buffer, *n)) return;
    }
}

TEST_F(stream_test, many_connections_speak_at_once) {
    ums::run({.processors = 2}, [] {
        listener door{endpoint::loopback(0)};
        const endpoint at = door.local().value();
        fiber server{[&door] {
            std::vector<fiber> all;
            while (auto s = door.accept()) all.emplace_back(echo, std::move(*s));
            for (fiber& f : all) f.join();
        }};
        std::vector<fiber> clients;
        for (int c = 0; c < scaled(100, 30); ++c)
            clients.emplace_back([&at, c] {
                stream s = stream::connect(at).value();
                char buffer[1024];
                for (int i = 1; i < scaled(50, 10); ++i) {
                    const std::string sent =
                        text(static_cast<char>('a' + (i + c) % 26), i * 17u % 1000 + 1);
                    s.write_all(sent).value();
                    s.read_all(buffer, sent.size()).value();
                    ASSERT_EQ(std::string(buffer, sent.size()), sent);
                }
            });
        for (fiber& f : clients) f.join();
        door.close();
        server.join();
    });
}

TEST_F(stream_test, large_data_in_both_directions_at_once_arrives_whole) {
    on_a_fiber_and_on_a_thread([] {
        listener door{endpoint::loopback(0)};
        const endpoint at = door.local().value();
        fiber server{[&] { echo(door.accept().value()); }};
        stream s = stream::connect(at).value();
        constexpr std::size_t bytes = 8u << 20;
        fiber writer{[&s] {
            std::vector<unsigned char> out(bytes);
            for (std::size_t i = 0; i < bytes; ++i)
                out[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
            s.write_all(out.data(), bytes).value();
            s.shutdown(SHUT_WR);
        }};
        std::vector<unsigned char> in(64 * 1024);
        std::size_t got = 0;
        bool same = true;
        for (;;) {
            const std::size_t n = s.read(in.data(), in.size()).value();
            if (n == 0) break;
            for (std::size_t i = 0; i < n; ++i, ++got)
                same &= in[i] == static_cast<unsigned char>(got * 2654435761u >> 24);
        }
        EXPECT_EQ(got, bytes);
        EXPECT_TRUE(same);
        writer.join();
        server.join();
    });
}

TEST_F(stream_test, a_read_gives_up_at_its_deadline_and_can_be_tried_again) {
    on_a_fiber_and_on_a_thread([] {
        auto [a, b] = stream::pair().value();
        char c;
        EXPECT_EQ(b.read(&c, 1, deadline_after(5ms)).error(), std::errc::timed_out);
        EXPECT_EQ(b.read(&c, 1, deadline_after(-1s)).error(), std::errc::timed_out);
        a.write_all("x").value();
        // The read takes what is there, though the time has passed.
        EXPECT_EQ(b.read(&c, 1, deadline_after(-1s)).value(), 1u);
    });
}

TEST_F(stream_test, a_read_gives_up_when_it_is_stopped) {
    on_a_fiber_and_on_a_thread([] {
        auto [a, b] = stream::pair().value();
        std::stop_source source;
        fiber stopper{[&] { source.request_stop(); }};
        char c;
        EXPECT_EQ(b.read(&c, 1, source.get_token()).error(), std::errc::operation_canceled);
        stopper.join();
    });
}

TEST_F(stream_test, limits_own_a_token_that_is_a_temporary) {
    on_a_fiber_and_on_a_thread([] {
        auto [a, b] = stream::pair().value();
        std::stop_source source;
        char c;
        const auto of = [&source] { return ums::limits{deadline_after(20s), source.get_token()}; };
        const ums::limits one = of(), two{source.get_token()}, copy{one};
        ums::limits three;
        three = two;
        EXPECT_NE(one.stop, copy.stop);
        fiber stopper{[&] { source.request_stop(); }};
        for (const ums::limits& l : {one, two, copy, three})
            EXPECT_EQ(b.read(&c, 1, l).error(), std::errc::operation_canceled);
        stopper.join();
        const std::stop_token named = source.get_token();
        EXPECT_EQ(ums::limits{named}.stop, &named);
    });
}

TEST_F(stream_test, a_close_ends_the_wait_of_another_fiber) {
    // No detector: the waiter that runs after the close must find the number unused, and the
    // detector opens a file for the moment of each look.
    const ums::options two{.processors = 2, .block = ums::block_detection::off};
    const auto body = [] {
        auto [a, b] = stream::pair().value();
        fiber closer{[&end = b] {
            for (int i = 0; i < 100; ++i) ums::this_fiber::yield();
            end.close();
        }};
        char c;
        EXPECT_EQ(b.read(&c, 1).error(), std::errc::bad_file_descriptor);
        closer.join();
    };
    ums::run(two, body);
    const ums::runtime started{two};
    body();
}

TEST_F(stream_test, a_refused_connect_fails_at_once) {
    on_a_fiber_and_on_a_thread([] {
        // Nobody listens there, and nobody else can get the port.
        endpoint at = endpoint::loopback(0);
        socklen_t bytes = endpoint::capacity;
        const int bound = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        ASSERT_EQ(::bind(bound, at.data(), at.size()), 0);
        ASSERT_EQ(::getsockname(bound, at.data(), &bytes), 0);
        EXPECT_EQ(stream::connect(at).error(), std::errc::connection_refused);
        ::close(bound);
    });
}

}  // namespace
