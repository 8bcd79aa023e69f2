// SPDX-License-Identifier: MIT
#include "mem/guard.hpp"

#include <gtest/gtest.h>

#include "mem/probe.hpp"
#include "os/failing_calls.hpp"

namespace {

using namespace ums;
using mem::guard_kind;
using os::failing_calls;
using os::page_bytes;

class guard_test : public ::testing::TestWithParam<guard_kind> {
protected:
    void SetUp() override {
        if (GetParam() == guard_kind::lightweight && !mem::has_lightweight_guards())
            GTEST_SKIP() << "the kernel has no MADV_GUARD_INSTALL";
    }
};

INSTANTIATE_TEST_SUITE_P(kinds, guard_test,
                         ::testing::Values(guard_kind::lightweight, guard_kind::mprotect),
                         [](const auto& kind) { return mem::name_of(kind.param); });

TEST_P(guard_test, protects_its_pages_and_no_others) {
    constexpr std::size_t pages = 8;
    auto* at = static_cast<char*>(os::map(pages * page_bytes));
    ASSERT_NE(at, nullptr);
    for (std::size_t i = 0; i < pages; ++i) at[i * page_bytes] = 'x';
    ASSERT_EQ(mem::install_guard(GetParam(), at + 2 * page_bytes, 3 * page_bytes), 0);
    for (std::size_t i = 0; i < pages; ++i) {
        const bool guarded = i >= 2 && i < 5;
        EXPECT_NE(mem::is_readable(at + i * page_bytes), guarded) << "page " << i;
        EXPECT_NE(mem::is_readable(at + (i + 1) * page_bytes - 1), guarded) << "page " << i;
        if (!guarded) {
            EXPECT_EQ(at[i * page_bytes], 'x') << "page " << i;
        }
    }
    os::unmap(at, pages * page_bytes);
}

TEST_P(guard_test, survives_giving_memory_back) {
    auto* at = static_cast<char*>(os::map(2 * page_bytes));
    ASSERT_NE(at, nullptr);
    ASSERT_EQ(mem::install_guard(GetParam(), at, page_bytes), 0);
    at[page_bytes] = 'x';
    os::system.madvise(at, 2 * page_bytes, MADV_DONTNEED);
    EXPECT_FALSE(mem::is_readable(at));
    EXPECT_EQ(at[page_bytes], 0);
    os::unmap(at, 2 * page_bytes);
}

TEST_P(guard_test, may_be_installed_twice) {
    void* at = os::map(page_bytes);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(mem::install_guard(GetParam(), at, page_bytes), 0);
    EXPECT_EQ(mem::install_guard(GetParam(), at, page_bytes), 0);
    EXPECT_FALSE(mem::is_readable(at));
    os::unmap(at, page_bytes);
}

TEST_P(guard_test, reports_what_the_kernel_says) {
    failing_calls calls;
    calls.fail(failing_calls::madvise, 1);
    calls.fail(failing_calls::mprotect, 1);
    void* at = os::map(page_bytes);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(mem::install_guard(GetParam(), at, page_bytes), -ENOMEM);
    EXPECT_TRUE(mem::is_readable(at));
    os::unmap(at, page_bytes);
}

TEST(guard, has_a_name) {
    EXPECT_STREQ(mem::name_of(guard_kind::lightweight), "lightweight");
    EXPECT_STREQ(mem::name_of(guard_kind::mprotect), "mprotect");
}

TEST(guard, a_kernel_without_lightweight_ones_is_recognised) {
    failing_calls calls;
    calls.fail(failing_calls::madvise, 1, 1, EINVAL);
    EXPECT_FALSE(mem::has_lightweight_guards());
    calls.heal();
    calls.fail(failing_calls::mmap, 1);
    EXPECT_FALSE(mem::has_lightweight_guards());
    EXPECT_EQ(calls.mapped_bytes(), 0);
}

}  // namespace
