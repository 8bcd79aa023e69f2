// SPDX-License-Identifier: MIT
#include "io/away/file.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "io/wait/descriptor.hpp"
#include "os/io_calls.hpp"
#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/waiting.hpp"
#include "ums/ums.hpp"

namespace {

using namespace std::chrono_literals;
using namespace ums;

class file_test : public conserving_test {};

// No detector: its looks open files for a moment, and would take the numbers that are to be reused.
const options undetected{.block = block_detection::off};

// A file of 18 bytes without a name.
int make_file() {
    char name[] = "/tmp/ums-file-test.XXXXXX";
    const int fd = ::mkstemp(name);
    ::unlink(name);
    EXPECT_EQ(::write(fd, "secret of the file", 18), 18);
    EXPECT_EQ(::lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

// Makes the only call of ours that the limit allows wait.
class busy_pool {
public:
    busy_pool() : most_{offload_stats().most} {
        set_offload_limit(1);
        io::offload_pool::asleep_ns.store(1'000'000'000'000, base::relaxed);
        caller_ =
            fiber{[this] { io::away([this]() noexcept { return is_over_.wait(false), 0l; }); }};
        yield_until([] { return offload_stats().busy == 1; });
    }
    void end() {
        is_over_ = true;
        is_over_.notify_one();
        caller_.join();
    }
    ~busy_pool() {
        set_offload_limit(most_);
        io::offload_pool::asleep_ns.store(asleep_ns_, base::relaxed);
    }
    busy_pool(const busy_pool&) = delete;
    busy_pool& operator=(const busy_pool&) = delete;

private:
    const unsigned most_;
    const std::int64_t asleep_ns_ = io::offload_pool::asleep_ns.load(base::relaxed);
    std::atomic<bool> is_over_{false};
    fiber caller_;
};

// Lets no read of the page cache succeed, and makes a call of one number wait until it is released.
class held_calls {
public:
    explicit held_calls(long number) {
        number_ = number;
        is_reached_ = is_released_ = false;
        os::io_system.call = [](long n, long a, long b, long c, long d, long e, long f) noexcept {
            if (n == SYS_preadv2 && f == RWF_NOWAIT) return -long{EAGAIN};
            if (n == number_) {
                is_reached_ = true;
                is_released_.wait(false);
            }
            return os::kernel_io.call(n, a, b, c, d, e, f);
        };
    }
    ~held_calls() { os::io_system = os::kernel_io; }
    held_calls(const held_calls&) = delete;
    held_calls& operator=(const held_calls&) = delete;

    static bool is_reached() { return is_reached_; }
    static void release() {
        is_released_ = true;
        is_released_.notify_all();
    }

private:
    static inline long number_;
    static inline std::atomic<bool> is_reached_, is_released_;
};

// The calls on a number wait for a thread of the pool. Meanwhile the number gets a connection.
TEST_F(file_test, a_call_that_waits_for_the_pool_does_not_touch_the_next_file) {
    using operation = std::function<std::error_code(int)>;
    char into[32];
    const std::vector<operation> all = {
        [](int fd) { return io::write(fd, "secret", 6).error(); },
        [](int fd) { return io::pwrite(fd, "secret", 6, 0).error(); },
        [&](int fd) { return io::read(fd, into, sizeof into).error(); },
        [&](int fd) { return io::pread(fd, into, sizeof into, 0).error(); },
        [](int fd) { return io::fsync(fd).error(); },
        [](int fd) { return io::fdatasync(fd).error(); },
        [](int fd) { return io::write_all(fd, "secret", 6).error(); },
    };
    const held_calls no_cache{-1};
    for (const operation& o : all)
        for (const bool by_libums : {true, false})
            run(undetected, [&] {
                const int fd = make_file();
                busy_pool pool;
                std::error_code why;
                fiber caller{[&] { why = o(fd); }};
                yield_until([] { return offload_stats().queued == 1; });
                if (by_libums)
                    io::close(fd).value();
                else
                    ::close(fd);
                int ends[2];
                ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
                ASSERT_EQ(ends[0], fd);
                ASSERT_EQ(::write(ends[1], "x", 1), 1);
                pool.end();
                caller.join();
                EXPECT_EQ(why, std::errc::bad_file_descriptor) << &o - all.data();
                char c;
                EXPECT_EQ(::recv(ends[1], &c, 1, MSG_DONTWAIT), -1);
                EXPECT_EQ(::recv(ends[0], &c, 1, MSG_DONTWAIT), 1);
                for (const int end : ends) io::close(end).value();
            });
}

// The thread of the pool is about to make the call: the number stays in use until it has.
TEST_F(file_test, a_number_that_a_thread_of_the_pool_is_about_to_use_is_not_free) {
    held_calls held{SYS_writev};
    run(undetected, [&] {
        const int fd = make_file();
        const int same = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
        fiber writer{[&] { EXPECT_EQ(io::write(fd, "public", 6).value(), 6u); }};
        yield_until(&held_calls::is_reached);
        std::atomic<bool> is_closed{false};
        fiber closer{[&] {
            io::close(fd).value();
            is_closed = true;
        }};
        until_waits(closer);
        EXPECT_FALSE(is_closed);
        // It looks closed.
        EXPECT_EQ(io::close(fd).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(io::write(fd, "x", 1).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(io::fsync(fd).error(), std::errc::bad_file_descriptor);
        held.release();
        writer.join();
        closer.join();
        char into[18];
        EXPECT_EQ(::pread(same, into, sizeof into, 0), 18);
        EXPECT_EQ(std::string(into, 18), "public of the file");
        EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
        ::close(same);
    });
}

TEST_F(file_test, nor_is_it_free_for_a_library_before_forget_returns) {
    held_calls held{SYS_writev};
    run(undetected, [&] {
        const int fd = make_file();
        fiber writer{[&] { EXPECT_EQ(io::write(fd, "public", 6).value(), 6u); }};
        yield_until(&held_calls::is_reached);
        std::atomic<bool> is_forgotten{false};
        fiber library{[&] {
            io::forget(fd);
            is_forgotten = true;
        }};
        until_waits(library);
        EXPECT_FALSE(is_forgotten);
        held.release();
        writer.join();
        library.join();
        EXPECT_EQ(io::write(fd, "x", 1).value(), 1u);  // The file is still open.
        io::close(fd).value();
    });
}

// The kernel has found the file: whatever the call waits for there, the close need not.
TEST_F(file_test, a_close_does_not_wait_for_a_call_that_blocks_in_the_kernel) {
    run(undetected, [] {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        char c = 0;
        std::atomic<bool> holds{false};
        std::thread reader{[&] {
            io::descriptor& d = *io::descriptor::find(ends[0]);
            const io::descriptor::hold held{d, d.generation(), SYS_read};
            EXPECT_TRUE(held);
            holds = true;
            // ThreadSanitizer would call read() a race with the open() below.
            EXPECT_EQ(::syscall(SYS_read, ends[0], &c, 1), 1);
        }};
        yield_until([&] { return holds.load(); });
        io::close(ends[0]).value();
        const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        EXPECT_EQ(next, ends[0]);
        ASSERT_EQ(::write(ends[1], "x", 1), 1);
        reader.join();
        EXPECT_EQ(c, 'x');
        ::close(next);
        ::close(ends[1]);
    });
}

// A thread of the pool makes the socket blocking for a while, and must not leave the next one so.
TEST_F(file_test, a_connect_to_a_full_unix_socket_leaves_the_next_file_alone) {
    run(undetected, [] {
        const auto at = net::endpoint::unix_socket("@ums-file-test-" + std::to_string(::getpid()));
        net::listener door{*at, {.backlog = 0}};
        std::vector<net::stream> fill;
        for (;;) {
            auto s = net::stream::connect(*at, deadline_after(1ms));
            if (!s) break;
            fill.push_back(std::move(*s));
        }
        for (int round = 0; round < 20; ++round) {
            const int fd = io::socket(AF_UNIX, SOCK_STREAM).value();
            const timeval own{7, 0};
            ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &own, sizeof own), 0);
            std::atomic<bool> begins{false};
            fiber connector{[&] {
                begins = true;
                EXPECT_EQ(io::connect(fd, at->data(), at->size(), deadline_after(20s)).error(),
                          std::errc::bad_file_descriptor);
            }};
            yield_until([&] { return begins.load(); });
            for (int i = 0; i < 10 * round; ++i) this_fiber::yield();
            const int same = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
            io::close(fd).value();
            const int next = io::socket(AF_UNIX, SOCK_STREAM).value();
            EXPECT_EQ(next, fd);
            connector.join();
            timeval of_socket{};
            socklen_t bytes = sizeof of_socket;
            for (const int one : {next, same}) {
                EXPECT_NE(::fcntl(one, F_GETFL) & O_NONBLOCK, 0) << (one == same);
                ASSERT_EQ(::getsockopt(one, SOL_SOCKET, SO_SNDTIMEO, &of_socket, &bytes), 0);
                EXPECT_EQ(of_socket.tv_sec, one == same ? 7 : 0);
            }
            ::close(same);
            io::close(next).value();
        }
    });
}

}  // namespace
