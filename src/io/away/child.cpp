// SPDX-License-Identifier: MIT
#include "ums/child.hpp"

#include <cerrno>
#include <csignal>

#include "io/away/file.hpp"
#include "io/wait/operation.hpp"
#include "os/own_number.hpp"
#include "ums/io.hpp"

namespace ums {

result<int> wait_child(pid_t pid, const limits& l) {
    const long made =
        os::out_of_the_way(os::io_call(SYS_pidfd_open, pid, 0), os::lowest_for_a_moment);
    if (made < 0) return result<int>::failure(made == -ESRCH ? ECHILD : static_cast<int>(-made));
    const int fd = static_cast<int>(made);
    io::descriptor::adopt(fd, 0);
    // A pidfd reports the end of any process, so first see whether this one is a child.
    siginfo_t info;
    long r = os::io_call(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, nullptr);
    if (r == 0) {
        const result<short> ended = io::poll(fd, POLLIN, l);
        if (!ended) r = -ended.error().value();
    }
    int status = 0;
    if (r == 0) r = os::io_call(SYS_wait4, pid, &status, WNOHANG, nullptr);
    // It has ended, but a debugger is told of that first. By the descriptor, because once somebody
    // else has waited for the child, another one may get its number.
    if (r == 0) {
        r = io::away([&]() noexcept {
            return os::io_call(SYS_waitid, P_PIDFD, fd, &info, WEXITED | WNOWAIT, nullptr);
        });
        if (r == 0) r = os::io_call(SYS_wait4, pid, &status, WNOHANG, nullptr);
        if (r == 0) r = -ECHILD;
    }
    io::close(fd);
    if (r < 0) return result<int>::failure(static_cast<int>(-r));
    return status;
}

}  // namespace ums
