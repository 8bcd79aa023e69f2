// SPDX-License-Identifier: MIT
#include "mem/guard.hpp"

#include <gtest/gtest.h>

#include "arch/sanitizer.hpp"
#include "internal/failing_calls.hpp"
#include "internal/probe.hpp"

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

// --- several guards at once ---

// `n` guards of a page each, on every second page.
struct fenced {
    static constexpr std::size_t n = 10, stride = 2 * page_bytes;

    char* at = static_cast<char*>(os::map(n * stride));
    ~fenced() { os::unmap(at, n * stride); }

    std::size_t fence(guard_kind kind) const {
        return mem::install_guards(kind, at, page_bytes, stride, n);
    }
    void expect_first(std::size_t guards) const {
        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_NE(mem::is_readable(at + i * stride), i < guards) << i;
            EXPECT_TRUE(mem::is_readable(at + i * stride + page_bytes)) << i;
        }
    }
};

TEST_P(guard_test, several_are_installed_at_once) {
    const fenced pages;
    ASSERT_NE(pages.at, nullptr);
    failing_calls calls;
    EXPECT_EQ(pages.fence(GetParam()), fenced::n);
    pages.expect_first(fenced::n);
    if (GetParam() == guard_kind::mprotect) {
        EXPECT_EQ(calls.made(failing_calls::mprotect), fenced::n);
        EXPECT_EQ(calls.made(failing_calls::madvise_many), 0u);
    } else if (!arch::under_valgrind()) {
        EXPECT_EQ(calls.made(failing_calls::madvise_many), 1u);
    }
}

TEST_P(guard_test, where_the_kernel_takes_one_at_a_time_they_are_installed_one_by_one) {
    for (const int error : {ENOSYS, EPERM, EINVAL, EBADF, EOPNOTSUPP}) {
        const fenced pages;
        ASSERT_NE(pages.at, nullptr);
        failing_calls calls;
        calls.fail(failing_calls::madvise_many, 1, ~std::uint64_t{0}, error);
        EXPECT_EQ(pages.fence(GetParam()), fenced::n);
        pages.expect_first(fenced::n);
        EXPECT_EQ(calls.made(failing_calls::madvise) + calls.made(failing_calls::mprotect),
                  fenced::n);
    }
}

TEST_P(guard_test, of_several_those_before_the_first_that_is_refused_are_installed) {
    for (std::size_t refused = 0; refused < fenced::n; ++refused) {
        const fenced pages;
        ASSERT_NE(pages.at, nullptr);
        failing_calls calls;
        calls.fail(failing_calls::madvise_many, 1);
        calls.fail(failing_calls::madvise, refused + 1);
        calls.fail(failing_calls::mprotect, refused + 1);
        EXPECT_EQ(pages.fence(GetParam()), refused);
        pages.expect_first(refused);
    }
}

// The kernel stops at the first range it refuses and says how many bytes it has advised.
TEST(guard, after_a_call_for_several_that_ended_early_the_rest_are_installed_one_by_one) {
    if (!mem::has_lightweight_guards()) GTEST_SKIP() << "the kernel has no MADV_GUARD_INSTALL";
    if (arch::under_valgrind()) GTEST_SKIP() << "Valgrind does not know the call for several";
    for (std::size_t first = 0; first <= fenced::n; ++first) {
        const fenced pages;
        ASSERT_NE(pages.at, nullptr);
        failing_calls calls;
        static std::size_t taken;
        taken = first;
        os::system.madvise_many = [](const iovec* ranges, std::size_t, int advice) noexcept {
            return taken == 0 ? -ENOMEM : os::kernel_calls.madvise_many(ranges, taken, advice);
        };
        EXPECT_EQ(pages.fence(guard_kind::lightweight), fenced::n);
        pages.expect_first(fenced::n);
        EXPECT_GE(calls.made(failing_calls::madvise), fenced::n - first);
    }
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
