// SPDX-License-Identifier: MIT
#pragma once

// support/no_descriptors.hpp: a process without a free descriptor.
//
// UBSan tells by a pipe whether memory can be read, when it checks the type of an object for the
// first time. So what throws std::system_error then is no test for it.

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

// While it exists, no descriptor can be opened unless one is closed first.
class no_descriptors {
public:
    no_descriptors() {
        const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (next < 0 || ::getrlimit(RLIMIT_NOFILE, &before_) != 0) std::abort();
        // Not below the numbers that libums's own descriptors have, because the limit is one of
        // numbers: a close of those would free none.
        const rlimit few{std::max(static_cast<rlim_t>(next + 1), rlim_t{64}), before_.rlim_max};
        if (::setrlimit(RLIMIT_NOFILE, &few) != 0) std::abort();
        for (int fd = next; fd >= 0; fd = ::dup(next)) taken_.push_back(fd);
    }
    ~no_descriptors() {
        for (const int fd : taken_) ::close(fd);
        if (::setrlimit(RLIMIT_NOFILE, &before_) != 0) std::abort();
    }
    no_descriptors(const no_descriptors&) = delete;
    no_descriptors& operator=(const no_descriptors&) = delete;

private:
    rlimit before_{};
    std::vector<int> taken_;
};
