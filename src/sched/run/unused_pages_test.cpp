// SPDX-License-Identifier: MIT
// variants: migrate p1 priority
#include "sched/run/unused_pages.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <stop_token>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "os/memory.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/channel.hpp"
#include "ums/condition_variable.hpp"
#include "ums/fiber.hpp"
#include "ums/fiber_ref.hpp"
#include "ums/jfiber.hpp"
#include "ums/latch.hpp"
#include "ums/mutex.hpp"
#include "ums/net.hpp"
#include "ums/run.hpp"
#include "ums/semaphore.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using namespace ums;
using sched::unused_pages;

class unused_pages_test : public conserving_test {
protected:
    unused_pages_test() { unused_pages::period.store(1'000'000, base::relaxed); }
    ~unused_pages_test() override { unused_pages::period.store(before_, base::relaxed); }

private:
    const os::nanoseconds before_ = unused_pages::period.load(base::relaxed);
};

// The pages with memory of the `bytes` that end at `top`, an address on the stack itself (a
// variable may lie elsewhere under AddressSanitizer).
std::size_t resident(const void* top, std::size_t bytes) {
    const auto end = reinterpret_cast<std::uintptr_t>(top) / os::page_bytes * os::page_bytes;
    std::vector<unsigned char> pages(bytes / os::page_bytes);
    EXPECT_EQ(::mincore(reinterpret_cast<void*>(end - bytes), bytes, pages.data()), 0);
    std::size_t n = 0;
    for (const unsigned char p : pages) n += p & 1u;
    return n;
}

// Writes `bytes` of the caller's stack, below the caller's frame.
[[gnu::noinline]] std::uint64_t go_deep(std::size_t bytes) {
    volatile char all[8192];
    for (std::size_t i = 0; i < sizeof all; i += 512) all[i] = static_cast<char>(i + bytes);
    const std::uint64_t below = bytes > sizeof all ? go_deep(bytes - sizeof all) : 0;
    return below + static_cast<unsigned char>(all[sizeof all - 512]);
}

constexpr std::size_t much = 200u * 1024;
const fiber_options large{.stack_bytes = 256u * 1024};

TEST_F(unused_pages_test, what_a_parked_fiber_does_not_use_goes) {
    run([] {
        std::atomic<const char*> frame{nullptr};
        bool is_whole = false;
        fiber deep{large, [&] {
                       char kept[3000];
                       for (std::size_t i = 0; i < sizeof kept; ++i)
                           kept[i] = static_cast<char>(i * 7);
                       const std::uint64_t once = go_deep(much);
                       frame = static_cast<const char*>(__builtin_frame_address(0));
                       this_fiber::park();
                       is_whole = true;
                       for (std::size_t i = 0; i < sizeof kept; ++i)
                           is_whole &= kept[i] == static_cast<char>(i * 7);
                       is_whole &= go_deep(much) == once;
                   }};
        while (frame.load() == nullptr) this_fiber::yield();
        // Of what lies well below its frame.
        while (resident(frame.load() - 16u * 1024, 160u * 1024) != 0) this_fiber::sleep_for(1ms);
        deep.ref().unpark();
        deep.join();
        EXPECT_TRUE(is_whole);
    });
}

TEST_F(unused_pages_test, whatever_it_waits_for) {
    run([] {
        std::atomic<int> waiting{0};
        counting_semaphore<> permits{0};
        latch gate{1};
        auto [here, there] = net::stream::pair().value();
        channel<int> numbers;
        mutex lock;
        condition_variable changed;
        bool is_changed = false;
        constexpr std::size_t count = 6;
        std::vector<std::atomic<const char*>> frames(count);
        const auto deep = [&](std::size_t i, auto wait) {
            return fiber{large, [&frames, &waiting, i, wait] {
                             go_deep(much);
                             frames[i] = static_cast<const char*>(__builtin_frame_address(0));
                             ++waiting;
                             wait();
                         }};
        };
        std::vector<fiber> all;
        all.push_back(deep(0, [&] { permits.acquire(); }));
        all.push_back(deep(1, [&] { gate.wait(); }));
        all.push_back(deep(2, [&from = here] { (void)from.wait_readable(); }));
        all.push_back(deep(3, [] { this_fiber::park_for(1h); }));
        all.push_back(deep(4, [&] { EXPECT_EQ(numbers.receive(), 1); }));
        all.push_back(deep(5, [&] {
            std::unique_lock held{lock};
            while (!is_changed) changed.wait(held);
        }));
        while (waiting != count) this_fiber::yield();
        for (const auto& frame : frames)
            while (resident(frame.load() - 16u * 1024, 160u * 1024) != 0)
                this_fiber::sleep_for(1ms);
        permits.release();
        gate.count_down();
        there.write_all("x").value();
        all[3].ref().unpark();
        EXPECT_EQ(numbers.send(1), channel_status::ok);
        {
            const std::lock_guard held{lock};
            is_changed = true;
        }
        changed.notify_all();
        for (fiber& f : all) f.join();
    });
}

TEST_F(unused_pages_test, measured_stacks_are_kept) {
    run({.measure_stacks = true}, [] {
        fiber deep{large, [&] {
                       go_deep(much);
                       const std::size_t used = this_fiber::stack_high_water_bytes();
                       this_fiber::sleep_for(20ms);
                       EXPECT_EQ(this_fiber::stack_high_water_bytes(), used);
                   }};
        deep.join();
    });
}

// A look that comes at any time loses no wake-up, deadline or stop, and no byte of a stack.
TEST_F(unused_pages_test, who_is_woken_meanwhile_runs_once_with_its_stack) {
    unused_pages::period.store(1'000, base::relaxed);
    run({.processors = 2}, [] {
        constexpr int count = 64;
        std::atomic<bool> is_over{false};
        std::atomic<std::uint64_t> parks{0};
        std::vector<jfiber> all;
        std::vector<fiber_ref> refs;
        const unsigned seed = test_seed();
        for (int i = 0; i < count; ++i)
            all.emplace_back(large, [&, i](std::stop_token stop) {
                std::mt19937 random{seed + static_cast<unsigned>(i)};
                while (!is_over) {
                    char kept[2000];
                    const auto mark = static_cast<char>(random());
                    for (char& c : kept) c = mark;
                    go_deep(random() % much);
                    switch (random() % 3) {
                        case 0:
                            this_fiber::park();
                            break;
                        case 1:
                            this_fiber::park_for(std::chrono::microseconds{random() % 3'000});
                            break;
                        case 2:
                            this_fiber::park_for(1h, stop);
                            break;
                    }
                    for (const char c : kept) ASSERT_EQ(c, mark);
                    ++parks;
                }
            });
        for (jfiber& f : all) refs.push_back(f.ref());
        std::mt19937 random{seed};
        const std::uint64_t enough = static_cast<std::uint64_t>(scaled(20'000, 1'000));
        while (parks < enough) {
            refs[random() % count].unpark();
            if (random() % 4 == 0) this_fiber::sleep_for(std::chrono::microseconds{random() % 300});
        }
        is_over = true;
        for (jfiber& f : all) f.request_stop();
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::atomic<bool> has_ended{false};
            fiber joiner{[&] {
                all[i].join();
                has_ended = true;
            }};
            while (!has_ended) {
                refs[i].unpark();
                this_fiber::sleep_for(100us);
            }
            joiner.join();
        }
    });
}

// The same for parks that set no bit: channels and condition variables that many use.
TEST_F(unused_pages_test, who_is_held_in_a_list_runs_once_with_its_stack) {
    unused_pages::period.store(1'000, base::relaxed);
    for (const unsigned processors : {1u, 2u})
        run({.processors = processors}, [] {
            constexpr int pairs = 16;
            const int rounds = scaled(2'000, 100);
            const unsigned seed = test_seed();
            std::vector<fiber> all;
            std::vector<std::unique_ptr<channel<int>>> to, from;
            mutex lock;
            condition_variable changed;
            int turn = 0;
            const auto work = [&](std::mt19937& random, auto wait) {
                char kept[2000];
                const auto mark = static_cast<char>(random());
                for (char& c : kept) c = mark;
                go_deep(random() % (much / 4));
                wait();
                for (const char c : kept) ASSERT_EQ(c, mark);
            };
            for (int i = 0; i < pairs; ++i) {
                to.push_back(std::make_unique<channel<int>>());
                from.push_back(std::make_unique<channel<int>>(1));
            }
            for (int i = 0; i < pairs; ++i) {
                all.emplace_back(large, [&, i, seed] {
                    std::mt19937 random{seed + static_cast<unsigned>(i)};
                    for (int n = 0; n < rounds; ++n) {
                        work(random, [&] { EXPECT_EQ(to[i]->receive(), n); });
                        EXPECT_EQ(from[i]->send(n), channel_status::ok);
                    }
                });
                all.emplace_back(large, [&, i, seed] {
                    std::mt19937 random{seed - static_cast<unsigned>(i)};
                    for (int n = 0; n < rounds; ++n) {
                        if (random() % 64 == 0) this_fiber::sleep_for(50us);
                        EXPECT_EQ(to[i]->send(n), channel_status::ok);
                        work(random, [&] { EXPECT_EQ(from[i]->receive(), n); });
                    }
                });
            }
            for (int i = 0; i < 8; ++i)
                all.emplace_back(large, [&, i, seed] {
                    std::mt19937 random{seed + 100 + static_cast<unsigned>(i)};
                    for (int n = 0; n < rounds / 8; ++n)
                        work(random, [&] {
                            std::unique_lock held{lock};
                            while (turn != n * 8 + i) changed.wait(held);
                            ++turn;
                            changed.notify_all();
                        });
                });
            for (fiber& f : all) f.join();
        });
}

// After that nothing wakes up any more.
TEST_F(unused_pages_test, looks_end_when_nothing_runs) {
    runtime started{{.processors = 2}};
    std::vector<fiber> all;
    for (int i = 0; i < 100; ++i) all.emplace_back([] { this_fiber::park(); });
    // A plain thread may look, too.
    while (unused_pages::look() != os::never) std::this_thread::sleep_for(1ms);
    for (fiber& f : all) {
        f.ref().unpark();
        f.join();
    }
}

}  // namespace
