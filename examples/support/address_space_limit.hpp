// SPDX-License-Identifier: MIT
#pragma once

// address_space_limit: while it exists, the process can map only that much more than before. For
// the servers' tests.

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

#include <gtest/gtest.h>

class address_space_limit {
public:
    explicit address_space_limit(std::size_t more_bytes) {
        std::size_t pages = 0;
        std::ifstream{"/proc/self/statm"} >> pages;
        EXPECT_EQ(getrlimit(RLIMIT_AS, &usual_), 0);
        rlimit low = usual_;
        low.rlim_cur = pages * static_cast<std::size_t>(getpagesize()) + more_bytes;
        EXPECT_EQ(setrlimit(RLIMIT_AS, &low), 0);
    }
    ~address_space_limit() { EXPECT_EQ(setrlimit(RLIMIT_AS, &usual_), 0); }
    address_space_limit(const address_space_limit&) = delete;
    address_space_limit& operator=(const address_space_limit&) = delete;

private:
    rlimit usual_{};
};
