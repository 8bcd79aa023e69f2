// SPDX-License-Identifier: MIT
#include "os/foreign.hpp"

#include <cerrno>
#include <cstdint>
#include <sys/mman.h>

#include "os/memory.hpp"
#include "support/conservation.hpp"

namespace {

using namespace ums;

class foreign_test : public conserving_test {};

void reads_what_is_there_and_nothing_else() {
    const std::uint64_t word = 0x1122334455667788;
    std::uint64_t read = 0;
    EXPECT_TRUE(os::read_foreign(&word, &read, sizeof read));
    EXPECT_EQ(read, word);
    void* page = os::map(os::page_bytes);
    ASSERT_NE(page, nullptr);
    os::unmap(page, os::page_bytes);
    EXPECT_FALSE(os::read_foreign(page, &read, sizeof read));
    EXPECT_FALSE(os::read_foreign(nullptr, &read, sizeof read));
}

TEST_F(foreign_test, what_is_there_is_read_and_what_is_gone_is_an_error) {
    reads_what_is_there_and_nothing_else();
}

TEST_F(foreign_test, it_reads_through_a_pipe_where_the_kernel_refuses_the_call) {
    os::system.read_own_memory = [](const void*, void*, std::size_t) noexcept -> long {
        return -EPERM;
    };
    reads_what_is_there_and_nothing_else();
    os::system = os::kernel_calls;
}

}  // namespace
