// SPDX-License-Identifier: MIT
//
// The system calls of the runtime fail, one at a time. Each small program below runs once for each
// call that it makes through os::system and os::io_system, or that the C library makes
// for the runtime; for each errno that the call may give; and for the k-th call, once and from
// there on. The program must come to its end, or report the error, or end by one line on standard
// error. Neither a fiber, a kernel thread, a descriptor nor a mapping may be left, and the same
// process must then run the program without a fault.
//
// A short form runs here; `make faults` runs all: UMS_TEST_FAULTS=n takes the first n calls.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <map>
#include <new>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "arch/sanitizer.hpp"
#include "os/io_calls.hpp"
#include "os/system.hpp"
#include "support/conservation.hpp"
#include "support/gate.hpp"
#include "support/scale.hpp"
#include "ums/ums.hpp"

#if defined(UMS_ASAN) || defined(UMS_TSAN)

// It puts functions in the place of the C library's that a sanitizer replaces, too.
TEST(faults_test, runs_without_a_sanitizer) { GTEST_SKIP() << "a sanitizer has those functions"; }

#else

namespace {

using namespace std::chrono_literals;
namespace os = ums::os;
namespace io = ums::io;
namespace this_fiber = ums::this_fiber;

// --- The calls and their errors ---

struct call {
    const char* name;
    std::vector<int> errors;
    long number = -1;  // Of a call through os::io_system.
    enum {
        instead,   // It fails instead of doing its work.
        after,     // It does its work, and fails then.
        for_good,  // If it fails, it never works: a filter refuses it.
        of_files,  // It does not fail on what libums has made: an eventfd, an epoll set.
    } fails = instead;
};

// From the manual pages, and ENOSYS and EPERM where a filter may refuse the call. Left out is what
// only a wrong argument gives (EFAULT, EINVAL, ENOTSOCK, ...), and EAGAIN where it means that a
// descriptor is not ready: the kernel gives it then, and at no other time.
const std::vector<int> opening{EMFILE, ENFILE, ENOMEM, EACCES, ENOENT, EINTR, ELOOP, EPERM};
const std::vector<int> making{EMFILE, ENFILE, ENOMEM, EPERM, ENOSYS};
const std::vector<int> reading{EIO, EINTR, ENOMEM, ECONNRESET};
const std::vector<int> newer{ENOSYS, EPERM, EINVAL, EOPNOTSUPP, EINTR, EIO};
const std::vector<int> writing{EPIPE, EINTR, EIO, ENOSPC, ENOMEM, ECONNRESET, EDQUOT};
const std::vector<int> closing{EIO, EINTR, ENOSPC, EDQUOT};
const std::vector<int> asking{ENOMEM, EPERM, ENOSYS, EINVAL};

const std::vector<call> calls{
    {"mmap", {ENOMEM, EAGAIN, EPERM}},
    {"munmap", {ENOMEM, EPERM}},
    {"mremap", {ENOMEM, EAGAIN, EPERM, ENOSYS}},
    {"mprotect", {ENOMEM, EACCES, EPERM, ENOSYS}},
    {"madvise", {ENOMEM, EAGAIN, EINVAL, EIO, EPERM, ENOSYS}},
    {"madvise_many", {ENOSYS, EBADF, EINVAL, ENOMEM, EPERM, ESRCH}},
    {"mincore", {ENOMEM, EAGAIN, EPERM, ENOSYS}},
    {"membarrier", {EPERM, ENOSYS, EINVAL, ENOMEM}},
    {"perf_event_open",
     {EACCES, EBUSY, EINTR, EINVAL, EMFILE, ENFILE, ENODEV, ENOENT, ENOMEM, ENOSPC, ENOSYS,
      EOPNOTSUPP, EOVERFLOW, EPERM, ESRCH, E2BIG}},
    {"perf_control", {EINVAL, EPERM, ENOSYS, ENOTTY}},
    {"signal_from", {EINVAL, EPERM, ENOSYS, ESRCH}},
    {"thread_timer_create", {EAGAIN, EINVAL, ENOMEM, ENOTSUP, EPERM, ENOSYS}},
    {"thread_timer_arm", {EINVAL, EPERM, ENOSYS}},
    {"thread_timer_delete", {EINVAL}, -1, call::after},
    {"signal_block", {EPERM, ENOSYS}},
    {"signal_wait", {EINTR, EPERM, ENOSYS}},
    {"signal_thread", {EAGAIN, EPERM, ENOSYS}},
    {"open_to_read", opening},
    {"open_at", {EMFILE, ENFILE, ENOMEM, EACCES, ENOENT, EINTR, EPERM, ESRCH, ENOTDIR}},
    {"read_from_start", {EIO, EINTR, ENOMEM, ESRCH, EPERM}},
    {"close_fd", closing, -1, call::after},
    {"identity_of", {ENOSYS}, -1, call::for_good},
    {"event_make", {EMFILE, ENFILE, ENODEV, ENOMEM, EPERM}},
    {"event_raise", {EAGAIN, EINTR, EPERM}},
    {"futex_wait", {EAGAIN, EINTR}},
    {"read_own_memory", {EPERM, ENOSYS, ENOMEM, EFAULT}},
    {"read_through_pipe", {EMFILE, ENFILE, EFAULT, EPERM}},
    {"duplicate", {EMFILE, EINVAL, EPERM}},
    {"rseq_unregister", {EINVAL, EPERM, ENOSYS}},
    {"rseq_register", {EINVAL, EPERM, EBUSY, ENOSYS}},
    {"auxiliary_value", {ENOENT}},
    // Through os::io_system.
    {"read", reading, SYS_read, call::of_files},
    {"readv", reading, SYS_readv},
    {"preadv", reading, SYS_preadv},
    {"preadv2", newer, SYS_preadv2},
    {"recvfrom", reading, SYS_recvfrom},
    {"recvmsg", reading, SYS_recvmsg},
    {"write", writing, SYS_write, call::of_files},
    {"writev", writing, SYS_writev},
    {"pwritev", writing, SYS_pwritev},
    {"pwritev2", newer, SYS_pwritev2},
    {"sendto", writing, SYS_sendto},
    {"sendmsg", writing, SYS_sendmsg},
    {"sendfile", {EIO, EINVAL, ENOMEM, EINTR}, SYS_sendfile},
    {"close", closing, SYS_close, call::after},
    {"fsync", closing, SYS_fsync},
    {"openat", opening, SYS_openat},
    {"unlinkat", {EACCES, EBUSY, EIO, EPERM, EROFS}, SYS_unlinkat},
    {"pipe2", making, SYS_pipe2},
    {"eventfd2", making, SYS_eventfd2},
    {"epoll_create1", making, SYS_epoll_create1},
    {"epoll_ctl", {ENOMEM, ENOSPC, EEXIST, ENOENT, EPERM}, SYS_epoll_ctl},
    {"epoll_pwait", {EINTR, EPERM, ENOSYS}, SYS_epoll_pwait},
    {"epoll_pwait2", {EINTR, EPERM, ENOSYS}, SYS_epoll_pwait2},
    {"ppoll", {EINTR, ENOMEM, EPERM, ENOSYS}, SYS_ppoll},
    {"fcntl", {EMFILE, EINVAL, EPERM, EACCES}, SYS_fcntl},
    {"fstat", {EPERM, ENOSYS}, SYS_fstat},  // Of a descriptor that is there nothing else fails.
    {"statx", asking, SYS_statx},
    {"socket", {EACCES, EAFNOSUPPORT, EMFILE, ENFILE, ENOBUFS, ENOMEM}, SYS_socket},
    {"socketpair", {EMFILE, ENFILE, ENOMEM, EOPNOTSUPP}, SYS_socketpair},
    {"bind", {EADDRINUSE, EACCES, EADDRNOTAVAIL, ENOMEM}, SYS_bind},
    {"listen", {EADDRINUSE, EOPNOTSUPP}, SYS_listen},
    {"accept4", {ECONNABORTED, EINTR, EMFILE, ENOBUFS, ENOMEM, EPROTO, EPERM}, SYS_accept4},
    {"connect",
     {ECONNREFUSED, EINTR, ENETUNREACH, ETIMEDOUT, EADDRNOTAVAIL, EPERM, EACCES},
     SYS_connect},
    {"getsockopt", {ENOBUFS, EPERM}, SYS_getsockopt},
    {"setsockopt", {ENOMEM, EPERM, ENOPROTOOPT}, SYS_setsockopt},
    {"getsockname", {ENOBUFS}, SYS_getsockname},
    {"shutdown", {ENOTCONN}, SYS_shutdown},
    {"dup3", {EMFILE, EBUSY, EINTR}, SYS_dup3},
    {"pidfd_open", {EMFILE, ENFILE, ENODEV, ENOMEM, ENOSYS, EPERM}, SYS_pidfd_open},
    {"waitid", {EINTR, EPERM, ENOSYS}, SYS_waitid},
    {"wait4", {EINTR}, SYS_wait4},
    // Of the C library.
    {"pthread_create", {EAGAIN, EPERM, ENOSYS}},
    {"sigaction", {ENOMEM, EPERM}},
    {"sigaltstack", {ENOMEM, EPERM}},
    {"sched_setaffinity", {EINVAL, EPERM, ESRCH, ENOSYS}},
    {"sched_getaffinity", {EINVAL, EPERM, ESRCH, ENOSYS}},
    {"sched_setscheduler", {EINVAL, EPERM, ESRCH, ENOSYS}},
    {"pthread_getattr_np", {ENOMEM, ENOENT, EACCES, EMFILE}},
};

constexpr std::size_t most_calls = 128;

std::size_t index_of(const char* name) {
    for (std::size_t i = 0; i < calls.size(); ++i)
        if (std::strcmp(calls[i].name, name) == 0) return i;
    std::fprintf(stderr, "%s is not in the table of calls\n", name);
    std::abort();
}

// --- What fails in this process ---

// In memory that a child process shares with its parent, and with children of its own.
struct shared {
    std::array<std::atomic<std::uint64_t>, most_calls> made;
    std::atomic<std::uint64_t> injected;
    std::atomic<long> unknown;  // The number of a call that the table does not have.
};
shared* state;

struct fault {
    std::size_t of = most_calls;  // None.
    int error = 0;
    std::uint64_t first = 0, last = 0;
};
fault injected;
std::atomic<bool> is_armed;
std::atomic<long> mapped;

// The error that the present call must fail with, or 0.
int due(std::size_t i) noexcept {
    if (!is_armed) return 0;
    const std::uint64_t n = ++state->made[i];
    if (i != injected.of || n < injected.first || n > injected.last) return 0;
    ++state->injected;
    return injected.error;
}

void count_mapped(std::size_t of, long result, const std::array<long, 3>& a) noexcept {
    static const std::size_t map = index_of("mmap"), unmap = index_of("munmap"),
                             remap = index_of("mremap");
    if (result < 0 && result > -4096) return;
    if (of == map) mapped += a[1];
    if (of == unmap) mapped -= a[1];
    if (of == remap) mapped += a[2] - a[1];
}

template <class T>
long as_number(T value) noexcept {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<long>(value);
    else
        return static_cast<long>(value);
}

// A call of the table that may fail.
template <auto member>
struct failing;
template <class R, class... A, R (*os::system_calls::*member)(A...) noexcept>
struct failing<member> {
    static inline std::size_t index;
    static R call(A... arguments) noexcept {
        const int error = due(index);
        // Those that return no errno return 0 for it.
        const R failure = static_cast<R>(std::is_signed_v<R> ? -error : 0);
        if (error != 0 && calls[index].fails != call::after) return failure;
        const R result = (os::kernel_calls.*member)(arguments...);
        const std::array<long, sizeof...(A) + 3> words{as_number(arguments)...};
        // MAP_FIXED replaces what is mapped there.
        if (!(sizeof...(A) == 4 && (words[3] & MAP_FIXED) != 0))
            count_mapped(index, static_cast<long>(result), {words[0], words[1], words[2]});
        return error != 0 ? failure : result;
    }
};

long failing_io(long number, long a, long b, long c, long d, long e, long f) noexcept {
    const auto it = std::find_if(calls.begin(), calls.end(),
                                 [number](const call& one) { return one.number == number; });
    if (it == calls.end()) {
        if (is_armed) state->unknown = number;
        return os::kernel_io.call(number, a, b, c, d, e, f);
    }
    struct stat is {};
    const bool is_spared = it->fails == call::of_files && ::fstat(static_cast<int>(a), &is) == 0 &&
                           (is.st_mode & S_IFMT) == 0;
    const int error = is_spared ? 0 : due(static_cast<std::size_t>(it - calls.begin()));
    if (error != 0 && it->fails != call::after) return -error;
    const long result = os::kernel_io.call(number, a, b, c, d, e, f);
    return error != 0 ? -error : result;
}

void install() {
#define FAILS(name)                                             \
    failing<& os::system_calls::name>::index = index_of(#name); \
    os::system.name = &failing<&os::system_calls::name>::call
    FAILS(mmap);
    FAILS(munmap);
    FAILS(mremap);
    FAILS(mprotect);
    FAILS(madvise);
    FAILS(madvise_many);
    FAILS(mincore);
    FAILS(membarrier);
    FAILS(perf_event_open);
    FAILS(perf_control);
    FAILS(signal_from);
    FAILS(thread_timer_create);
    FAILS(thread_timer_arm);
    FAILS(thread_timer_delete);
    FAILS(signal_block);
    FAILS(signal_wait);
    FAILS(signal_thread);
    FAILS(open_to_read);
    FAILS(open_at);
    FAILS(read_from_start);
    FAILS(close_fd);
    FAILS(identity_of);
    FAILS(event_make);
    FAILS(event_raise);
    FAILS(futex_wait);
    FAILS(read_own_memory);
    FAILS(read_through_pipe);
    FAILS(duplicate);
    FAILS(rseq_unregister);
    FAILS(rseq_register);
    FAILS(auxiliary_value);
#undef FAILS
    os::io_system.call = &failing_io;
}

// The error with which the call of that name must fail, or 0. It may be asked before this file's
// tables are there.
int due_by_name(const char* name) noexcept { return is_armed ? due(index_of(name)) : 0; }

template <class F>
F* next_of(const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// `failure` is what the function returns if it fails with `error`.
#define FAILS(name, failure, parameters, arguments)              \
    extern "C" int name parameters noexcept {                    \
        static const auto real = next_of<int parameters>(#name); \
        const int error = due_by_name(#name);                    \
        return error != 0 ? failure : real arguments;            \
    }

FAILS(pthread_create, error,
      (pthread_t * made, const pthread_attr_t* a, void* (*run)(void*), void* argument),
      (made, a, run, argument))
FAILS(sigaction, (errno = error, -1),
      (int number, const struct sigaction* next, struct sigaction* before), (number, next, before))
FAILS(sigaltstack, (errno = error, -1), (const stack_t* next, stack_t* before), (next, before))
FAILS(sched_setaffinity, (errno = error, -1), (pid_t tid, std::size_t bytes, const cpu_set_t* set),
      (tid, bytes, set))
FAILS(sched_getaffinity, (errno = error, -1), (pid_t tid, std::size_t bytes, cpu_set_t* set),
      (tid, bytes, set))
FAILS(sched_setscheduler, (errno = error, -1), (pid_t tid, int policy, const sched_param* given),
      (tid, policy, given))
FAILS(pthread_getattr_np, error, (pthread_t of, pthread_attr_t* a), (of, a))

namespace {

// --- The programs ---

// The program's own check.
void expect(bool is_right, const char* what) {
    if (!is_right) throw std::logic_error{what};
}

// A fiber whose exception comes out of join(). What its function owns goes with its end, or with
// its failed start.
class task {
public:
    template <class F>
    explicit task(F f)
        : fiber_{[this, f = std::move(f)]() mutable noexcept {
              try {
                  F mine = std::move(f);
                  mine();
              } catch (...) {
                  error_ = std::current_exception();
              }
          }} {}
    task(const task&) = delete;
    task& operator=(const task&) = delete;
    ~task() {
        if (fiber_.joinable()) fiber_.join();
    }
    void join() {
        fiber_.join();
        if (error_ != nullptr) std::rethrow_exception(error_);
    }

private:
    std::exception_ptr error_;
    ums::fiber fiber_;
};

// A descriptor that is closed with it.
class owned {
public:
    explicit owned(int fd) : fd_{fd} {}
    owned(owned&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    owned& operator=(owned&&) = delete;
    ~owned() {
        if (fd_ >= 0) static_cast<void>(io::close(fd_));
    }
    operator int() const { return fd_; }  // NOLINT: as a descriptor is passed.

private:
    int fd_;
};

void start_and_stop() {
    for (int i = 0; i < 2; ++i) ums::run({.processors = 2}, [] {});
}

void spawn_and_join() {
    ums::run({.processors = 2}, [] {
        std::atomic<int> sum{0};
        std::deque<task> all;
        for (int i = 0; i < 20; ++i)
            all.emplace_back([&sum] {
                this_fiber::yield();
                ++sum;
            });
        for (task& one : all) one.join();
        expect(sum == 20, "a fiber has not run");
    });
}

void large_stacks() {
    ums::run({.processors = 1, .stack_bytes = 1 << 20, .warm_stacks = 0}, [] {
        for (int round = 0; round < 2; ++round) {
            std::deque<task> all;
            for (int i = 0; i < 5; ++i) all.emplace_back([] { this_fiber::yield(); });
            for (task& one : all) one.join();
        }
    });
}

void sleep() {
    ums::run({.processors = 2}, [] {
        task other{[] { this_fiber::sleep_for(1ms); }};
        this_fiber::sleep_for(2ms);
        other.join();
    });
}

void timers() {
    ums::run({.processors = 2}, [] {
        ums::counting_semaphore<> never{0}, soon{0};
        std::deque<task> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back([&never, &soon, i] {
                const auto limit = std::chrono::milliseconds{1 + i};
                expect(!never.try_acquire_for(limit), "a permit came from nowhere");
                soon.release();
            });
        for (int i = 0; i < 4; ++i) expect(soon.try_acquire_for(1h), "no permit came");
        for (task& one : all) one.join();
    });
}

void echo() {
    ums::run({.processors = 2}, [] {
        int there[2], back[2];
        io::pipe(there).value();
        owned in{there[0]}, out{there[1]};
        io::pipe(back).value();
        owned in_back{back[0]}, out_back{back[1]};
        task server{[in = std::move(in), out = std::move(out_back)] {
            char c;
            while (io::read(in, &c, 1).value() == 1) io::write_all(out, &c, 1).value();
        }};
        task client{[in = std::move(in_back), out = std::move(out)]() mutable {
            for (char c = 'a'; c < 'f'; ++c) {
                io::write_all(out, &c, 1).value();
                char got = 0;
                expect(io::read(in, &got, 1).value() == 0 || got == c, "another byte came back");
            }
        }};
        client.join();
        server.join();
    });
}

void adopt() {
    ums::run({.processors = 2}, [] {
        int ends[2];
        expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair()");
        owned here{ends[0]}, there{ends[1]};
        io::adopt(here).value();
        task reader{[here = std::move(here)] {
            char text[8];
            while (io::recv(here, text, sizeof text, 0).value() != 0) {
            }
            this_fiber::yield();
        }};
        {
            const owned mine = std::move(there);
            for (int i = 0; i < 3; ++i) {
                io::send(mine, "text", 4).value();
                this_fiber::yield();
            }
            pollfd both[] = {{mine, POLLOUT, 0}, {mine, POLLIN, 0}};
            io::poll(both, 2).value();
        }
        reader.join();
    });
}

void connect() {
    ums::run({.processors = 2}, [] {
        using namespace ums::net;
        listener door{endpoint::loopback(0)};
        const endpoint at = door.local().value();
        task client{[at] {
            stream s = ums::net::connect(std::span{&at, 1}).value();
            s.write_all("question").value();
            char text[8];
            s.read_all(text, sizeof text).value();
        }};
        std::exception_ptr error;
        try {
            stream s = door.accept(ums::deadline_after(1s)).value();
            char text[8];
            s.read_all(text, sizeof text).value();
            s.write_all("response").value();
        } catch (...) {
            error = std::current_exception();
        }
        door.close().value();
        client.join();
        if (error != nullptr) std::rethrow_exception(error);
    });
}

// Without a detector it would wait for ever, so it does not start.
void hand_off() {
    ums::run({.processors = 1, .block = ums::block_detection::monitor}, [] {
        for (int round = 0; round < 2; ++round) {
            std::array<pipe_gate, 3> gates;
            std::deque<task> all;
            struct opener {
                std::array<pipe_gate, 3>& gates;
                ~opener() {
                    for (pipe_gate& gate : gates) gate.open();
                }
            };
            {
                const opener at_end{gates};
                for (pipe_gate& gate : gates)
                    all.emplace_back([&gate] { expect(gate.pass(), "the read failed"); });
                this_fiber::yield();
            }
            for (task& one : all) one.join();
        }
    });
}

void marked_blocks() {
    ums::run({.processors = 2}, [] {
        pipe_gate gate;
        struct opener {
            pipe_gate& gate;
            ~opener() { gate.open(); }
        };
        {
            const opener at_end{gate};
            static_cast<void>(at_end);
        }
        task one{[&gate] { ums::blocking([&gate] { expect(gate.pass(), "the read failed"); }); }};
        task other{[] { this_fiber::yield(); }};
        one.join();
        other.join();
    });
}

// Where slices are missing the fiber ends by itself.
void time_slices() {
    ums::run({.processors = 1, .time_slice_us = 200}, [] {
        std::atomic<bool> has_run{false};
        const auto until = std::chrono::steady_clock::now() + 20ms;
        task spins{[&] {
            while (!has_run && std::chrono::steady_clock::now() < until) {
            }
        }};
        task next{[&] { has_run = true; }};
        spins.join();
        next.join();
    });
}

void offload() {
    ums::run({.processors = 2}, [] {
        expect(ums::offload([] { return 7; }) == 7, "an off-loaded call was lost");
        const owned file{io::open("/tmp", O_TMPFILE | O_RDWR, 0600).value()};
        expect(io::pwrite(file, "text", 4, 0).value() == 4, "pwrite()");
        io::fsync(file).value();
        char text[4];
        expect(io::pread(file, text, sizeof text, 0).value() == 4, "pread()");
    });
}

void signals() {
    ums::run({.processors = 1}, [] {
        ums::signal_events resized{SIGWINCH};
        task sender{[] { ::kill(::getpid(), SIGWINCH); }};
        expect(resized.wait().value() == SIGWINCH, "another signal");
        sender.join();
    });
}

void workers() {
    ums::completion_list list;
    std::vector<ums::worker> made;
    int sum = 0;
    std::exception_ptr error;
    try {
        for (int i = 0; i < 3; ++i)
            made.emplace_back(list, [&sum] {
                ++sum;
                ums::yield_worker(&sum);
                const ums::worker_blocking region;
                ++sum;
            });
    } catch (...) {
        error = std::current_exception();
    }
    std::deque<ums::worker_ref> ready;
    std::size_t ended = 0;
    try {
        ums::schedule(list, [&](const ums::scheduler_event& e) {
            if (e.why == ums::scheduler_event::yield) ready.push_back(e.who);
            while (ended < made.size()) {
                for (const ums::worker_ref w : ready.empty() ? list.dequeue() : list.try_dequeue())
                    w.is_terminated() ? void(++ended) : ready.push_back(w);
                if (ready.empty()) continue;
                const ums::worker_ref next = ready.front();
                ready.pop_front();
                next.execute();
            }
        });
    } catch (...) {
        // Nobody will execute the workers: they end with the process.
        std::fprintf(stderr, "workers: %s\n", "no scheduler");
        std::_Exit(3);
    }
    for (ums::worker& one : made) one.join();
    if (error != nullptr) std::rethrow_exception(error);
    expect(sum == 6, "a worker has not ended");
}

void fork_a_child() {
    ums::run({.processors = 2}, [] {
        const pid_t child = ::fork();
        expect(child >= 0, "fork()");
        if (child == 0) {
            try {
                task one{[] { this_fiber::sleep_for(1ms); }};
                one.join();
                std::_Exit(0);
            } catch (const std::system_error& e) {
                std::fprintf(stderr, "in the child: %s\n", e.what());
                std::_Exit(3);
            }
        }
        const auto got = ums::wait_child(child);
        if (!got) {
            int status;
            ::waitpid(child, &status, 0);
        }
        const int status = got.value();
        if (WIFSIGNALED(status)) std::raise(WTERMSIG(status));
        if (WEXITSTATUS(status) == 3) std::_Exit(3);
        expect(WEXITSTATUS(status) == 0, "the child went wrong");
    });
}

struct program {
    const char* name;
    void (*run)();
};
constexpr program programs[] = {
    {"start_and_stop", &start_and_stop},
    {"spawn_and_join", &spawn_and_join},
    {"large_stacks", &large_stacks},
    {"sleep", &sleep},
    {"timers", &timers},
    {"echo", &echo},
    {"adopt", &adopt},
    {"connect", &connect},
    {"hand_off", &hand_off},
    {"marked_blocks", &marked_blocks},
    {"time_slices", &time_slices},
    {"offload", &offload},
    {"signals", &signals},
    {"workers", &workers},
    {"fork", &fork_a_child},
};

// --- A run ---

constexpr int right = 0, wrong = 1, reported = 3;

// One run of `run`, in a process of its own.
int outcome_of(void (*run)()) {
    try {
        run();
    } catch (const std::logic_error& e) {
        std::fprintf(stderr, "WRONG: %s\n", e.what());
        return wrong;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return reported;
    }
    return right;
}

template <class Set>
bool has_left(const Set& before, const Set& now, const char* what) {
    bool any = false;
    for (const auto& each : now)
        if (!before.contains(each))
            any = true, std::fprintf(stderr, "LEFT: %s %s\n", what, each.c_str());
    return any;
}

// The body of the child process: the faulty run, and one without a fault after it. `most_mapped`
// is what may be left of it by a run that nothing happens to; what cannot be unmapped stays.
[[noreturn]] void be_the_child(const program& p, const fault& f, long most_mapped) {
    install();
    injected = f;
    const auto threads = conservation::threads();
    const auto fds = conservation::fds();
    is_armed = true;
    int outcome = outcome_of(p.run);
    is_armed = false;
    if (conservation::runtime_runs()) std::fprintf(stderr, "LEFT: a runtime\n"), outcome = wrong;
    if (has_left(threads, conservation::threads(), "thread")) outcome = wrong;
    if (has_left(fds, conservation::fds(), "descriptor")) outcome = wrong;
    if (mapped > most_mapped &&
        std::strcmp(f.of < calls.size() ? calls[f.of].name : "", "munmap") != 0) {
        std::fprintf(stderr, "LEFT: %ld bytes mapped, not %ld\n", mapped.load(), most_mapped);
        outcome = wrong;
    }
    if (f.of == most_calls) {  // What it costs without a fault.
        std::fprintf(stderr, "%ld\n", mapped.load());
        std::_Exit(outcome);
    }
    if (outcome != wrong && outcome_of(p.run) != right) outcome = wrong;
    std::_Exit(outcome);
}

struct run_end {
    int status = 0;
    bool has_hung = false;
    std::string err;
};

// The limit is counted in short waits, so that it does not run out while the machine, and with it
// the child, stands still.
run_end run_in_a_child(const program& p, const fault& f, long most_mapped) {
    new (state) shared{};
    const int err = ::memfd_create("stderr", MFD_CLOEXEC);
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(err, STDERR_FILENO);
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        be_the_child(p, f, most_mapped);
    }
    run_end end;
    pollfd ended{static_cast<int>(::syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
    int waits = 0;
    const int most = std::getenv("TEST_CHILD_SECONDS") != nullptr
                         ? std::atoi(std::getenv("TEST_CHILD_SECONDS"))
                         : 60;
    while (::poll(&ended, 1, 1000) == 0 && ++waits < most) {
    }
    if (waits == most) {
        end.has_hung = true;
        ::kill(child, SIGKILL);
    }
    ::close(ended.fd);
    ::waitpid(child, &end.status, 0);
    char text[4096];
    off_t at = 0;
    for (ssize_t n; (n = ::pread(err, text, sizeof text, at)) > 0; at += n)
        end.err.append(text, static_cast<std::size_t>(n));
    ::close(err);
    return end;
}

struct row {
    std::uint64_t runs = 0, right = 0, reported = 0, by_line = 0;
    row& operator+=(const row& other) {
        runs += other.runs, right += other.right;
        reported += other.reported, by_line += other.by_line;
        return *this;
    }
};
void print(const char* name, const row& r) {
    std::printf("%-28s %6lu %6lu %9lu %8lu\n", name, r.runs, r.right, r.reported, r.by_line);
}

// Some errors come again and again, but not for ever.
bool lasts(int error) {
    constexpr int passing[] = {EINTR, EAGAIN, EBUSY, ECONNABORTED, EPROTO};
    return std::find(std::begin(passing), std::end(passing), error) == std::end(passing);
}

class faults : public ::testing::TestWithParam<program> {
protected:
    static void SetUpTestSuite() {
        state = static_cast<shared*>(::mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    }
    static void TearDownTestSuite() {
        ::munmap(state, sizeof(shared));
        row all;
        std::printf("%-28s %6s %6s %9s %8s\n", "call", "runs", "right", "reported", "by line");
        for (std::size_t c = 0; c < calls.size(); ++c) {
            if (rows[c].runs != 0) print(calls[c].name, rows[c]);
            all += rows[c];
        }
        print("all", all);
    }

    void run(const program& p, const fault& f, long most_mapped) {
        const run_end end = run_in_a_child(p, f, most_mapped);
        if (state->injected == 0) return;  // It made fewer calls this time.
        row& r = rows[f.of];
        ++r.runs;
        // In a fiber, the report of the signal follows.
        const bool has_line = end.err.starts_with("ums: ") && !end.err.starts_with("ums: SIG");
        if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == right)
            ++r.right;
        else if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == reported)
            ++r.reported;
        else if (WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT && has_line)
            ++r.by_line;
        else
            ADD_FAILURE() << p.name << ": " << calls[f.of].name << " no. " << f.first
                          << (f.last == f.first ? "" : " and on") << " fails with "
                          << ::strerrorname_np(f.error) << ": "
                          << (end.has_hung ? "it hangs" : "status ") << end.status << "\n"
                          << end.err;
    }

    static inline std::array<row, most_calls> rows;
};

TEST_P(faults, each_call_may_fail_with_each_errno) {
    if (under_tsan)
        GTEST_SKIP() << "ThreadSanitizer's runtime cannot go on in the child of a fork()";
    const program& p = GetParam();
    std::array<std::uint64_t, most_calls> made{};
    long most_mapped = 0;
    for (int i = 0; i < 3; ++i) {
        const run_end end = run_in_a_child(p, {}, 1l << 40);
        ASSERT_EQ(end.status, 0) << end.err;
        ASSERT_EQ(state->unknown, 0) << "this call is not in the table";
        most_mapped = std::max(most_mapped, std::atol(end.err.c_str()));
        for (std::size_t c = 0; c < calls.size(); ++c)
            made[c] = std::max(made[c], state->made[c].load());
    }
    const auto most = static_cast<std::uint64_t>(sized("UMS_TEST_FAULTS", 1, 1));
    const bool is_short = std::getenv("UMS_TEST_FAULTS") == nullptr;
    for (std::size_t c = 0; c < calls.size(); ++c) {
        std::set<std::uint64_t> nths;
        for (std::uint64_t n = 1; n <= std::min(made[c], most); ++n) nths.insert(n);
        if (made[c] != 0 && !is_short) nths.insert(made[c]);
        if (calls[c].fails == call::for_good && made[c] != 0) nths = {1};
        for (const int error : calls[c].errors) {
            for (const std::uint64_t n : nths) {
                if (calls[c].fails != call::for_good) run(p, {c, error, n, n}, most_mapped);
                if (lasts(error)) run(p, {c, error, n, ~std::uint64_t{0}}, most_mapped);
            }
            if (is_short) break;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(programs, faults, ::testing::ValuesIn(programs),
                         [](const auto& of) { return std::string{of.param.name}; });

}  // namespace

#endif
