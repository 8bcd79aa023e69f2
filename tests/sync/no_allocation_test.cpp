// SPDX-License-Identifier: MIT

// What fork and join, and a scope's children, take from the heap: nothing.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/fork_join.hpp"
#include "ums/parallel_for.hpp"
#include "ums/run.hpp"
#include "ums/scope.hpp"
#include "ums/value_fiber.hpp"

namespace {
std::atomic<int> allocations = 0;
}

#if !defined(UMS_TEST_TSAN) && !defined(UMS_TEST_ASAN)  // Their runtimes have their own.
void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* const at = std::malloc(bytes)) return at;
    std::abort();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    ++allocations;
    void* at = nullptr;
    if (posix_memalign(&at, static_cast<std::size_t>(alignment), bytes) == 0) return at;
    std::abort();
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }
#endif

namespace {

class no_allocation_test : public conserving_test {};

// The second time, when the queues have grown and stacks are there.
template <class F>
void allocates_nothing(const char* what, F f) {
    f();
    const int before = allocations;
    f();
    EXPECT_EQ(allocations - before, 0) << what;
}

template <class F>
void allocates_nothing_anyhow(const char* what, F f) {
    for (const ums::launch how : {ums::launch::post, ums::launch::dispatch})
        allocates_nothing(what, [&] { f(ums::fiber_options{.launch = how}); });
}

TEST_F(no_allocation_test, of_fork_and_join) {
    if (under_asan || under_tsan) GTEST_SKIP() << "nothing is counted under this sanitizer";
    ums::run({.processors = 1}, [] {
        struct block {
            char bytes[300] = {};
        };
        allocates_nothing_anyhow("a value", [](const ums::fiber_options& how) {
            EXPECT_EQ(ums::spawn(how, [] { return 3; }).join(), 3);
        });
        allocates_nothing_anyhow("a large value", [](const ums::fiber_options& how) {
            EXPECT_EQ(ums::spawn(how, [] { return block{}; }).join().bytes[299], 0);
        });
        allocates_nothing_anyhow("a value of a detached fiber", [](const ums::fiber_options& how) {
            ums::spawn(how, [] { return 3; }).detach();
        });
        allocates_nothing_anyhow("a scope", [](const ums::fiber_options& how) {
            int calls = 0;
            ums::scope all;
            for (int i = 0; i < 10; ++i) all.spawn(how, [&] { ++calls; });
            all.join();
            EXPECT_EQ(calls, 10);
        });
        allocates_nothing_anyhow("a scope with options", [](const ums::fiber_options& how) {
            ums::scope all{how};
            all.spawn([] {});
        });
        allocates_nothing("fork_join", [] {
            const auto [a, b] = ums::fork_join([] { return 1; }, [] { return block{}; });
            EXPECT_EQ(a + b.bytes[0], 1);
        });
        allocates_nothing("parallel_for", [] {
            int calls = 0;
            ums::parallel_for(0, 100, 3, [&](int) { ++calls; });
            EXPECT_EQ(calls, 100);
        });
        // So that the count is known to count.
        const int before = allocations;
        const std::string text(100, 'x');
        struct alignas(128) wide {
            int value = 0;
        };
        const auto aligned = std::make_unique<wide>();
        EXPECT_EQ(allocations - before, 2);
    });
}

}  // namespace
