// SPDX-License-Identifier: MIT
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/io_calls.hpp"
#include "support/conservation.hpp"
#include "ums/ums.hpp"

#if !defined(UMS_TEST_ASAN) && !defined(UMS_TEST_TSAN) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define UMS_TEST_REFUSES_MEMORY 1

namespace {
thread_local bool is_refused = false;
}

// The data about descriptors is aligned to cache lines, and little else is.
void* operator new(std::size_t bytes, std::align_val_t align) {
    void* const made = is_refused ? nullptr : std::aligned_alloc(std::size_t(align), bytes);
    if (made == nullptr) throw std::bad_alloc{};
    return made;
}
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }
#endif

namespace {

using namespace ums;

class readiness_test : public conserving_test {};

#if defined(UMS_TEST_REFUSES_MEMORY)
// Numbers about which nothing is known yet.
constexpr int far = 5000, farther = 7000;

// Makes epoll descriptors of such numbers.
class far_epolls {
public:
    far_epolls() {
        os::io_system.call = [](long n, long a, long b, long c, long d, long e, long f) noexcept {
            const long made = os::kernel_io.call(n, a, b, c, d, e, f);
            if (n != SYS_epoll_create1 || made < 0) return made;
            const long moved =
                os::kernel_io.call(SYS_fcntl, made, F_DUPFD_CLOEXEC, farther, 0, 0, 0);
            os::kernel_io.call(SYS_close, made, 0, 0, 0, 0, 0);
            return moved;
        };
    }
    ~far_epolls() { os::io_system = os::kernel_io; }
    far_epolls(const far_epolls&) = delete;
    far_epolls& operator=(const far_epolls&) = delete;
};

TEST_F(readiness_test, without_memory_a_number_is_refused_and_can_be_closed) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit wanted{before.rlim_max, before.rlim_max};
    if (before.rlim_max <= farther || ::setrlimit(RLIMIT_NOFILE, &wanted) != 0)
        GTEST_SKIP() << "no number is that large";
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const int fd = ::fcntl(ends[0], F_DUPFD_CLOEXEC, far);
    char c;
    is_refused = true;
    EXPECT_EQ(io::read(fd, &c, 1).error(), std::errc::not_enough_memory);
    EXPECT_EQ(io::wait_readable(fd).error(), std::errc::not_enough_memory);
    EXPECT_EQ(io::fsync(fd).error(), std::errc::not_enough_memory);
    EXPECT_TRUE(io::close(fd));
    EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
    EXPECT_EQ(io::read(-1, &c, 1).error(), std::errc::bad_file_descriptor);
    {
        const far_epolls high;
        pollfd both[] = {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}};
        EXPECT_EQ(io::poll(both, 2).error(), std::errc::not_enough_memory);
    }
    is_refused = false;
    ::close(ends[0]);
    ::close(ends[1]);
    ::setrlimit(RLIMIT_NOFILE, &before);
}
#else
TEST_F(readiness_test, without_memory_a_number_is_refused_and_can_be_closed) {
    GTEST_SKIP() << "the sanitizers have an allocator of their own";
}
#endif

}  // namespace
