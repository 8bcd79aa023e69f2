// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "arch/sanitizer.hpp"
#include "os/cpu/topology.hpp"
#include "sched/run/cluster.hpp"

namespace {
thread_local unsigned allocations = 0;
thread_local unsigned refused = 0;  // The number of the allocation that fails; 0: none.
}  // namespace

#if defined(UMS_TSAN)
#define COUNTS_ALLOCATIONS false  // ThreadSanitizer has operators of its own.
#else
#define COUNTS_ALLOCATIONS true
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (++allocations != refused)
        if (void* const made = std::malloc(bytes)) return made;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, std::size_t) noexcept { std::free(at); }
#endif

namespace {

using namespace ums;

// A fiber may be stopped inside the allocator, with its lock. When the fiber has its turn again its
// carrier, in the handler of the signal, follows the processor that it was given.
void expect_no_allocation(bool pin, std::vector<int> cpus) {
    if (!COUNTS_ALLOCATIONS) GTEST_SKIP() << "ThreadSanitizer has an operator new of its own";
    const sched::cluster one{
        {.name = "one", .processors = 1, .policy = nullptr, .pin = pin, .cpus = std::move(cpus)}};
    std::thread{[&one] {
        const unsigned before = allocations;
        one.place_thread(0, true);
        one.place_thread(1, false);
        EXPECT_EQ(allocations, before);
    }}.join();
}

TEST(place_thread_test, a_carrier_of_a_pinned_cluster_does_not_allocate) {
    expect_no_allocation(true, {});
}

TEST(place_thread_test, a_carrier_of_a_cluster_with_cpus_does_not_allocate) {
    expect_no_allocation(false, {os::nth_usable_cpu(0)});
}

// A pinned processor measures its distance to the others, and reads files for that.
TEST(place_thread_test, a_pinned_cluster_without_memory_is_refused) {
    if (!COUNTS_ALLOCATIONS) GTEST_SKIP() << "ThreadSanitizer has an operator new of its own";
    if (os::usable_cpus() < 2) GTEST_SKIP() << "one CPU only";
    bool is_made = false;
    for (unsigned n = 1; !is_made; ++n) {
        allocations = 0;
        refused = n;
        try {
            const sched::cluster one{
                {.name = "one", .processors = 2, .policy = nullptr, .pin = true, .cpus = {}}};
            is_made = true;
        } catch (const std::bad_alloc&) {
        }
        refused = 0;
        EXPECT_EQ(allocations < n, is_made);
    }
}

}  // namespace
