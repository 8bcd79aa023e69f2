// SPDX-License-Identifier: MIT
#include "io/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <random>
#include <sys/epoll.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "os/io_calls.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/fiber.hpp"
#include "ums/io.hpp"
#include "ums/net.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace ums;
using namespace std::chrono_literals;

// While it exists, every `each`th call of one kind fails.
class failing_io {
public:
    failing_io(long number, int error, int each = 1) {
        number_ = number;
        error_ = error;
        each_ = each;
        count_ = 0;
        os::io_system.call = [](long n, long a, long b, long c, long d, long e, long f) noexcept {
            if (n == number_ && ++count_ % each_ == 0) return -static_cast<long>(error_);
            return os::kernel_io.call(n, a, b, c, d, e, f);
        };
    }
    ~failing_io() { os::io_system = os::kernel_io; }
    [[nodiscard]] int count() const { return count_; }

private:
    static inline long number_;
    static inline int error_, each_;
    static inline std::atomic<int> count_;
};

class engine_test : public conserving_test {};

// Sends a byte through a pipe, with a wait.
int waits_for_a_byte() {
    int ends[2];
    io::pipe(ends).value();
    fiber writer{[&] {
        this_fiber::yield();
        io::write_all(ends[1], "x", 1).value();
    }};
    char c = 0;
    const bool got = io::read(ends[0], &c, 1).value() == 1 && c == 'x';
    writer.join();
    io::close(ends[0]);
    io::close(ends[1]);
    return got ? 0 : 1;
}

TEST_F(engine_test, without_a_wait_there_is_no_engine) {
    // No detector: a carrier that its hand-off adds would have descriptors of its own.
    run({.processors = 2, .block = block_detection::off}, [] {
        const auto before = conservation::fds();
        int ends[2];
        io::pipe(ends).value();
        io::write_all(ends[1], "x", 1).value();
        char c;
        io::read_all(ends[0], &c, 1).value();
        io::close(ends[0]);
        io::close(ends[1]);
        EXPECT_EQ(conservation::fds(), before);
    });
}

TEST_F(engine_test, no_descriptor_for_the_engine_is_the_operations_error) {
    for (const long call : {long{SYS_epoll_create1}, long{SYS_eventfd2}, long{SYS_epoll_ctl}}) {
        run({.processors = 1}, [&] {
            int ends[2];
            io::pipe(ends).value();
            char c;
            {
                const failing_io none{call, EMFILE};
                EXPECT_EQ(io::read(ends[0], &c, 1).error(), std::errc::too_many_files_open);
            }
            EXPECT_EQ(waits_for_a_byte(), 0);
            io::close(ends[0]);
            io::close(ends[1]);
        });
    }
}

TEST_F(engine_test, interrupted_calls_are_made_again) {
    for (const long call : {long{SYS_recvfrom}, long{SYS_sendto}, long{SYS_accept4}, long{SYS_read},
                            long{SYS_pwritev2}, long{SYS_epoll_pwait2}, long{SYS_epoll_pwait}}) {
        const failing_io interrupted{call, EINTR, 2};
        run({.processors = 2}, [] {
            for (int i = 0; i < 20; ++i) {
                EXPECT_EQ(waits_for_a_byte(), 0);
                net::listener door{net::endpoint::loopback(0)};
                const net::endpoint at = door.local().value();
                fiber client{[&] {
                    net::stream s = net::stream::connect(at).value();
                    s.write_all("hello").value();
                }};
                net::stream s = door.accept().value();
                char buffer[5];
                s.read_all(buffer, 5).value();
                client.join();
            }
        });
    }
}

TEST_F(engine_test, a_storm_of_signals_disturbs_nothing) {
    struct sigaction handler {
    }, before;
    handler.sa_handler = [](int) {};
    sigaction(SIGALRM, &handler, &before);
    const itimerval storm{{0, 200}, {0, 200}}, calm{};
    setitimer(ITIMER_REAL, &storm, nullptr);
    run({.processors = 2}, [] {
        for (int i = 0; i < scaled(500, 100); ++i) EXPECT_EQ(waits_for_a_byte(), 0);
    });
    setitimer(ITIMER_REAL, &calm, nullptr);
    sigaction(SIGALRM, &before, nullptr);
}

fiber reads_a_byte(int from, std::atomic<bool>& got) {
    return fiber{[from, &got] {
        char c;
        io::read_all(from, &c, 1).value();
        got = true;
    }};
}

TEST_F(engine_test, a_processor_that_computes_does_not_keep_events_from_an_idle_one) {
    run({.processors = 2}, [] {
        if (cluster::standard().processors() < 2) GTEST_SKIP() << "needs two processors";
        int ends[2];
        io::pipe(ends).value();
        std::atomic<bool> got = false;
        fiber reader = reads_a_byte(ends[0], got);
        this_fiber::yield();
        io::write_all(ends[1], "x", 1).value();
        while (!got) {  // Computes, and never switches.
        }
        reader.join();
        io::close(ends[0]);
        io::close(ends[1]);
    });
}

TEST_F(engine_test, on_one_processor_an_edge_comes_while_another_fiber_only_switches) {
    run({.processors = 1}, [] {
        int ends[2];
        io::pipe(ends).value();
        for (int i = 0; i < scaled(200, 50); ++i) {
            std::atomic<bool> got = false;
            fiber reader = reads_a_byte(ends[0], got);
            this_fiber::yield();
            std::thread writer{[&] { ASSERT_EQ(::write(ends[1], "x", 1), 1); }};
            while (!got) this_fiber::yield();  // Makes no system call but the engine's.
            writer.join();
            reader.join();
        }
        io::close(ends[0]);
        io::close(ends[1]);
    });
}

TEST_F(engine_test, on_one_processor_who_became_ready_first_runs_first) {
    // No detector: a fiber whose processor was handed off in the middle of its read comes later.
    run({.processors = 1, .block = block_detection::off}, [] {
        if (cluster::standard().processors() != 1) GTEST_SKIP() << "needs one processor";
        constexpr int count = 200;
        std::vector<std::array<int, 2>> pipes(count);
        std::vector<int> written(count), read(count);
        std::vector<fiber> readers;
        std::atomic<std::size_t> begun = 0, done = 0;
        for (int i = 0; i < count; ++i) {
            io::pipe(pipes[static_cast<std::size_t>(i)].data()).value();
            written[static_cast<std::size_t>(i)] = i;
        }
        for (int i = 0; i < count; ++i)
            readers.emplace_back([&, i] {
                char c;
                ++begun;
                io::read_all(pipes[static_cast<std::size_t>(i)][0], &c, 1).value();
                read[done++] = i;
            });
        while (begun < count) this_fiber::yield();
        std::shuffle(written.begin(), written.end(), std::mt19937_64{test_seed()});
        // These are more than one turn of the engine takes, and no other fiber runs meanwhile.
        for (const int i : written)
            io::write_all(pipes[static_cast<std::size_t>(i)][1], "x", 1).value();
        for (fiber& r : readers) r.join();
        EXPECT_EQ(read, written);
        for (const auto& p : pipes)
            for (const int end : p) io::close(end);
    });
}

TEST_F(engine_test, processors_come_and_go_while_fibers_wait) {
    run({.processors = 1}, [] {
        std::atomic<bool> over = false;
        fiber speaker{[&] {
            while (!over) EXPECT_EQ(waits_for_a_byte(), 0);
        }};
        for (int i = 0; i < scaled(100, 20); ++i) {
            cluster::standard().add_processor();
            EXPECT_EQ(waits_for_a_byte(), 0);
            cluster::standard().remove_processor();
        }
        over = true;
        speaker.join();
    });
}

}  // namespace
