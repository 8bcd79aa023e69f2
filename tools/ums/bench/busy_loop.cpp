// SPDX-License-Identifier: MIT
#include "busy_loop.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace tool {

busy_loop::busy_loop(const std::vector<int>& cpus) {
    processes_.reserve(cpus.size());
    const pid_t parent = getpid();
    for (const int cpu : cpus) {
        assert(cpu >= 0 && cpu < CPU_SETSIZE && "a loop would run on every CPU");
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        const pid_t child = fork();
        if (child == 0) {
            if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
                sched_setaffinity(0, sizeof one, &one) != 0)
                _exit(1);
            for (;;) asm volatile("");
        }
        if (child < 0) {
            const int error = errno;
            end();
            throw std::system_error{error, std::generic_category(), "fork"};
        }
        processes_.push_back(child);
    }
}

busy_loop::~busy_loop() { end(); }

void busy_loop::end() noexcept {
    for (const pid_t one : processes_) {
        assert(one > 0 && "the signal would go to other programs");
        kill(one, SIGKILL);
    }
    for (const pid_t one : processes_)
        while (waitpid(one, nullptr, 0) < 0 && errno == EINTR) {
        }
    processes_.clear();
}

}  // namespace tool
