// SPDX-License-Identifier: MIT
#include "os/io_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/errno.hpp"
#include "os/own_number.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UMS_INTERCEPTED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UMS_INTERCEPTED 1
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#define UMS_CLOSES_IN_USE 1
#endif
#endif

namespace ums::os {

namespace {

#if defined(UMS_CLOSES_IN_USE)
// It is allowed here (io/wait/descriptor.hpp), and no race, to close a descriptor that another
// thread uses.
long close_in_use(int fd) noexcept {
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    const long result = ::close(fd);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    return result;
}
#else
[[maybe_unused]] long close_in_use(int fd) noexcept { return ::close(fd); }
#endif

#if defined(UMS_INTERCEPTED)
template <class T>
T* pointer(long word) noexcept {
    return reinterpret_cast<T*>(word);
}

// Goes through the functions that the sanitizers intercept: they check the memory, and know that
// what comes out of a descriptor is ordered after what went in.
long make(long number, long a, long b, long c, long d, long e, long f) noexcept {
    const int fd = static_cast<int>(a);
    const auto size = [](long n) { return static_cast<std::size_t>(n); };
    const auto flags = [](long n) { return static_cast<int>(n); };
    switch (number) {
        case SYS_read:
            return ::read(fd, pointer<void>(b), size(c));
        case SYS_write:
            return ::write(fd, pointer<void>(b), size(c));
        case SYS_readv:
            return ::readv(fd, pointer<iovec>(b), flags(c));
        case SYS_writev:
            return ::writev(fd, pointer<iovec>(b), flags(c));
        // The sanitizers do not know these two; an empty call tells them of the order.
        case SYS_preadv2: {
            const long n = ::syscall(number, a, b, c, d, e, f);
            if (n >= 0 && d == -1) ::readv(fd, pointer<iovec>(b), 0);
            return n;
        }
        case SYS_pwritev2:
            if (d == -1) ::writev(fd, pointer<iovec>(b), 0);
            return ::syscall(number, a, b, c, d, e, f);
        case SYS_pread64:
            return ::pread(fd, pointer<void>(b), size(c), d);
        case SYS_pwrite64:
            return ::pwrite(fd, pointer<void>(b), size(c), d);
        case SYS_recvfrom:
            if (e == 0) return ::recv(fd, pointer<void>(b), size(c), flags(d));
            return ::recvfrom(fd, pointer<void>(b), size(c), flags(d), pointer<sockaddr>(e),
                              pointer<socklen_t>(f));
        case SYS_sendto:
            if (e == 0) return ::send(fd, pointer<void>(b), size(c), flags(d));
            return ::sendto(fd, pointer<void>(b), size(c), flags(d), pointer<sockaddr>(e),
                            static_cast<socklen_t>(f));
        case SYS_recvmsg:
            return ::recvmsg(fd, pointer<msghdr>(b), flags(c));
        case SYS_sendmsg:
            return ::sendmsg(fd, pointer<msghdr>(b), flags(c));
        case SYS_accept4:
            return ::accept4(fd, pointer<sockaddr>(b), pointer<socklen_t>(c), flags(d));
        case SYS_connect:
            return ::connect(fd, pointer<sockaddr>(b), static_cast<socklen_t>(c));
        case SYS_socket:
            return ::socket(fd, flags(b), flags(c));
        case SYS_socketpair:
            return ::socketpair(fd, flags(b), flags(c), pointer<int>(d));
        case SYS_pipe2:
            return ::pipe2(pointer<int>(a), flags(b));
        case SYS_close:
            return close_in_use(fd);
        case SYS_shutdown:
            return ::shutdown(fd, flags(b));
        case SYS_epoll_create1:
            return ::epoll_create1(fd);
        case SYS_epoll_ctl:
            return ::epoll_ctl(fd, flags(b), flags(c), pointer<epoll_event>(d));
        case SYS_epoll_pwait:
            return ::epoll_wait(fd, pointer<epoll_event>(b), flags(c), flags(d));
        case SYS_eventfd2:
            return ::eventfd(static_cast<unsigned>(a), flags(b));
        default:
            return ::syscall(number, a, b, c, d, e, f);
    }
}
#elif !defined(__x86_64__)
long make(long number, long a, long b, long c, long d, long e, long f) noexcept {
    return ::syscall(number, a, b, c, d, e, f);
}
#endif

#if defined(__x86_64__) && !defined(UMS_INTERCEPTED)
// Executes the instruction itself: the C library's syscall() moves six arguments around and turns
// the result into an errno, which would have to be turned back.
long call_kernel(long number, long a, long b, long c, long d, long e, long f) noexcept {
    register long fourth asm("r10") = d;
    register long fifth asm("r8") = e;
    register long sixth asm("r9") = f;
    long result = number;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                 : "rcx", "r11", "memory");
    return result;
}
#else
long call_kernel(long number, long a, long b, long c, long d, long e, long f) noexcept {
    int* const at = &errno;
    const int before = read_errno(at);
    const long result = make(number, a, b, c, d, e, f);
    if (result != -1) return result;
    const int error = read_errno(at);
    write_errno(at, before);
    return -error;
}
#endif

}  // namespace

const io_calls kernel_io = {.call = &call_kernel};
constinit io_calls io_system = {.call = &call_kernel};

long poll_call(pollfd* fds, std::size_t count, const timespec* limit) noexcept {
    const long n = io_call(SYS_ppoll, fds, count, limit, nullptr, 8);
#if defined(SYS_poll)
    if (is_refused(n)) {
        constexpr long most = INT_MAX / 1000 - 1;
        const long ms = limit == nullptr ? -1
                                         : std::min<long>(limit->tv_sec, most) * 1000 +
                                               (limit->tv_nsec + 999'999) / 1'000'000;
        return io_call(SYS_poll, fds, count, ms);
    }
#endif
    return n;
}

bool is_anonymous(int fd) noexcept {
    struct stat is;
    const long r = io_call(SYS_fstat, fd, &is);
    return r == 0 ? (is.st_mode & S_IFMT) == 0 : is_refused(r);
}

}  // namespace ums::os
