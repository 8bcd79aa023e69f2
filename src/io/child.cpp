// SPDX-License-Identifier: MIT
#include "ums/child.hpp"

#include <cerrno>

#include "io/operation.hpp"
#include "ums/io.hpp"

namespace ums {

result<int> wait_child(pid_t pid, const limits& l) {
    const long made = os::io_call(SYS_pidfd_open, pid, 0);
    if (made < 0) return result<int>::failure(made == -ESRCH ? ECHILD : static_cast<int>(-made));
    const int fd = static_cast<int>(made);
    io::descriptor::adopt(fd, 0);
    const result<short> ended = io::poll(fd, POLLIN, l);
    io::close(fd);
    if (!ended) return result<int>::failure(ended.error().value());
    int status = 0;
    const long r = os::io_call(SYS_wait4, pid, &status, 0, nullptr);
    if (r < 0) return result<int>::failure(static_cast<int>(-r));
    return status;
}

}  // namespace ums
