// SPDX-License-Identifier: MIT
#include "os/system.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/errno.hpp"
#include "os/own_number.hpp"

namespace ums::os {

namespace {

long checked(long result) noexcept { return result == -1 ? -read_errno(&errno) : result; }

// A caller of the table may need the fiber's errno later: keep it.
struct errno_kept {
    int saved = read_errno(&errno);
    ~errno_kept() { write_errno(&errno, saved); }
};

}  // namespace

const system_calls kernel_calls = {
    .mmap =
        [](void* at, std::size_t bytes, int protection, int flags) noexcept {
            errno_kept keep;
            return checked(reinterpret_cast<long>(::mmap(at, bytes, protection, flags, -1, 0)));
        },
    .munmap =
        [](void* at, std::size_t bytes) noexcept {
            errno_kept keep;
            return checked(::munmap(at, bytes));
        },
    .mremap =
        [](void* at, std::size_t bytes, std::size_t new_bytes) noexcept {
            errno_kept keep;
            return checked(reinterpret_cast<long>(::mremap(at, bytes, new_bytes, MREMAP_MAYMOVE)));
        },
    .mprotect =
        [](void* at, std::size_t bytes, int protection) noexcept {
            errno_kept keep;
            return checked(::mprotect(at, bytes, protection));
        },
    .madvise =
        [](void* at, std::size_t bytes, int advice) noexcept {
            errno_kept keep;
            return checked(::madvise(at, bytes, advice));
        },
    .madvise_many =
        [](const iovec* ranges, std::size_t n, int advice) noexcept {
            errno_kept keep;
            // PIDFD_SELF_PROCESS, newer than Debian 12's headers.
            constexpr int this_process = -10'001;
            return checked(::syscall(SYS_process_madvise, this_process, ranges, n, advice, 0));
        },
    .mincore =
        [](void* at, std::size_t bytes, unsigned char* pages) noexcept {
            errno_kept keep;
            return checked(::mincore(at, bytes, pages));
        },
    .membarrier =
        [](int command) noexcept {
            errno_kept keep;
            return checked(::syscall(SYS_membarrier, command, 0, 0));
        },
    .perf_event_open =
        [](perf_event_attr* wanted, int tid, int cpu) noexcept {
            errno_kept keep;
            constexpr unsigned long flags = PERF_FLAG_FD_CLOEXEC;
            return out_of_the_way(
                checked(::syscall(SYS_perf_event_open, wanted, tid, cpu, -1, flags)));
        },
    .perf_control =
        [](int fd, unsigned long request, unsigned long argument) noexcept {
            errno_kept keep;
            return checked(::syscall(SYS_ioctl, fd, request, argument));
        },
    .signal_from =
        [](int fd, int tid, int signal) noexcept {
            errno_kept keep;
            f_owner_ex owner{F_OWNER_TID, tid};
            long result = checked(::fcntl(fd, F_SETOWN_EX, &owner));
            if (result == 0) result = checked(::fcntl(fd, F_SETSIG, signal));
            if (result == 0) result = checked(::fcntl(fd, F_SETFL, O_RDONLY | O_ASYNC));
            return result;
        },
    .thread_timer_create =
        [](int clock, int tid, int signal, void* value, int* id) noexcept {
            errno_kept keep;
            sigevent event{};
            event.sigev_notify = SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_value.sival_ptr = value;
            event._sigev_un._tid = tid;
            return checked(::syscall(SYS_timer_create, clock, &event, id));
        },
    .thread_timer_arm =
        [](int id, long ns) noexcept {
            errno_kept keep;
            const itimerspec once{{0, 0}, {ns / 1'000'000'000, ns % 1'000'000'000}};
            return checked(::syscall(SYS_timer_settime, id, 0, &once, nullptr));
        },
    .thread_timer_delete =
        [](int id) noexcept {
            errno_kept keep;
            return checked(::syscall(SYS_timer_delete, id));
        },
    .signal_block =
        [](int signal) noexcept {
            errno_kept keep;
            const std::uint64_t set = std::uint64_t{1} << (signal - 1);
            return checked(::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, nullptr, sizeof set));
        },
    .signal_wait =
        [](int signal, const timespec* limit) noexcept {
            errno_kept keep;
            const std::uint64_t set = std::uint64_t{1} << (signal - 1);
            return checked(::syscall(SYS_rt_sigtimedwait, &set, nullptr, limit, sizeof set));
        },
    .signal_thread =
        [](int tid, int signal) noexcept {
            errno_kept keep;
            return checked(::syscall(SYS_tgkill, ::getpid(), tid, signal));
        },
    .open_to_read =
        [](const char* path) noexcept {
            errno_kept keep;
            return out_of_the_way(checked(::open(path, O_RDONLY | O_CLOEXEC)));
        },
    .open_at =
        [](int folder, const char* path) noexcept {
            errno_kept keep;
            return out_of_the_way(checked(::openat(folder, path, O_RDONLY | O_CLOEXEC)),
                                  lowest_for_a_moment);
        },
    .read_from_start =
        [](int fd, void* into, std::size_t bytes) noexcept {
            errno_kept keep;
            const long n = checked(::pread(fd, into, bytes, 0));
            if (n >= 0 || ::lseek(fd, 0, SEEK_SET) != 0) return n;
            return checked(::read(fd, into, bytes));  // A filter may refuse pread() alone.
        },
    .close_fd =
        [](int fd) noexcept {
            errno_kept keep;
            return checked(::close(fd));
        },
    .identity_of = [](int fd) noexcept -> std::uint64_t {
        errno_kept keep;
        struct stat is;
        return ::fstat(fd, &is) == 0 ? (is.st_ino ^ is.st_dev << 40) | 1ull << 63 : 0;
    },
    .event_make =
        []() noexcept {
            errno_kept keep;
            return out_of_the_way(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
        },
    .event_raise =
        [](int fd) noexcept {
            errno_kept keep;
            const std::uint64_t one = 1;
            // The number may have a file of the program's by now.
            return is_anonymous(fd) ? checked(::write(fd, &one, sizeof one)) : -EBADF;
        },
    .futex_wait =
        [](const void* word, unsigned expected, const timespec* limit) noexcept {
            errno_kept keep;
            return checked(::syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, limit,
                                     nullptr, FUTEX_BITSET_MATCH_ANY));
        },
    .futex_wake =
        [](const void* word, int waiters) noexcept {
            errno_kept keep;
            return checked(::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters));
        },
    .clock_monotonic =
        [](timespec* now) noexcept {
            return static_cast<long>(::clock_gettime(CLOCK_MONOTONIC, now));
        },
    .read_own_memory =
        [](const void* at, void* into, std::size_t bytes) noexcept {
            errno_kept keep;
            const iovec from{const_cast<void*>(at), bytes}, to{into, bytes};
            // Passed as a long: of an int on the stack, the kernel would also read what lies beside
            // it.
            return checked(
                ::syscall(SYS_process_vm_readv, long{::getpid()}, &to, 1ul, &from, 1ul, 0ul));
        },
    .read_through_pipe =
        [](const void* at, void* into, std::size_t bytes) noexcept {
            errno_kept keep;
            int ends[2];
            if (const long error = checked(::pipe2(ends, O_CLOEXEC)); error != 0) return error;
            for (int& end : ends) end = static_cast<int>(out_of_the_way(end, lowest_for_a_moment));
            // Called by number: a sanitizer would look at the bytes before write() does.
            long n = checked(::syscall(SYS_write, ends[1], at, bytes));
            if (n > 0) n = checked(::read(ends[0], into, static_cast<std::size_t>(n)));
            ::close(ends[0]);
            ::close(ends[1]);
            return n;
        },
    .duplicate =
        [](int fd) noexcept {
            errno_kept keep;
            const long made = checked(::fcntl(fd, F_DUPFD_CLOEXEC, lowest_that_stays));
            // The limit of descriptors may be as low as that.
            return made != -EINVAL ? made : checked(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
        },
    .signal_mask =
        [](const std::uint64_t* mask, std::uint64_t* old) noexcept {
            errno_kept keep;
            // Called by number: the C library's function leaves its own signals out.
            return checked(::syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, old, sizeof *mask));
        },
    .rseq_unregister =
        [](void* area, unsigned bytes, unsigned signature) noexcept {
            errno_kept keep;
            constexpr int unregister = 1;  // RSEQ_FLAG_UNREGISTER
            return checked(::syscall(SYS_rseq, area, bytes, unregister, signature));
        },
    .rseq_register =
        [](void* area, unsigned bytes, unsigned signature) noexcept {
            errno_kept keep;
            return checked(::syscall(SYS_rseq, area, bytes, 0, signature));
        },
    .auxiliary_value = [](unsigned long type) noexcept { return ::getauxval(type); },
};

constinit system_calls system = {};

namespace {
// The table must be usable before any constructor runs.
__attribute__((constructor(101))) void install() noexcept { system = kernel_calls; }
}  // namespace

}  // namespace ums::os
