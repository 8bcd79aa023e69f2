// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "sched/fiber/exit_hooks.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::fiber;
using ums::impl::at_fiber_exit;
using ums::impl::exit_hook;
using ums::impl::exit_stage;
namespace this_fiber = ums::this_fiber;

class exit_hooks_test : public conserving_test {};

// Frees itself after its run.
template <class F>
void at_exit(F action, exit_stage stage = exit_stage::first) {
    struct owning : exit_hook {
        explicit owning(F f) : call(std::move(f)) {}
        F call;
    };
    auto* made = new owning{std::move(action)};
    made->run = [](exit_hook& self) noexcept {
        const std::unique_ptr<owning> last{static_cast<owning*>(&self)};
        last->call();
    };
    at_fiber_exit(*made, stage);
}

template <class F>
void as_a_fiber_and_as_a_thread(F body) {
    ums::run({.processors = 2}, [&] { fiber{body}.join(); });
    std::thread{body}.join();
}

TEST_F(exit_hooks_test, they_run_in_reverse_after_the_function_and_before_the_join_returns) {
    std::string order;
    auto body = [&order] {
        struct at_return {
            std::string& order;
            ~at_return() { order += "r"; }
        } const last{order};
        at_exit([&order] { order += "1"; });
        at_exit([&order] { order += "2"; });
        order += "f";
    };
    as_a_fiber_and_as_a_thread(body);
    EXPECT_EQ(order, "fr21fr21");
}

TEST_F(exit_hooks_test, the_last_stage_comes_after_all_of_the_first) {
    std::string order;
    as_a_fiber_and_as_a_thread([&order] {
        at_exit([&order] { order += "1"; });
        at_exit([&order] { order += "z"; }, exit_stage::last);
        at_exit(
            [&order] {
                order += "y";
                at_exit([&order] { order += "3"; });
            },
            exit_stage::last);
        at_exit([&order] { order += "2"; });
    });
    EXPECT_EQ(order, "21y3z21y3z");
}

TEST_F(exit_hooks_test, one_that_registers_another_is_followed_by_it) {
    int runs = 0;
    struct again {
        int& runs;
        int left;
        void operator()() const {
            ++runs;
            if (left > 0) at_exit(again{runs, left - 1});
        }
    };
    as_a_fiber_and_as_a_thread([&runs] { at_exit(again{runs, 99}); });
    EXPECT_EQ(runs, 200);
}

TEST_F(exit_hooks_test, they_may_block_and_move) {
    ums::run({.processors = 2}, [] {
        constexpr int fibers = scaled(1000, 100);
        std::atomic<int> runs = 0;
        std::vector<fiber> all;
        for (int i = 0; i < fibers; ++i)
            all.emplace_back([&runs] {
                const auto id = this_fiber::get_id();
                for (int hook = 0; hook < 3; ++hook)
                    at_exit([&runs, id] {
                        fiber{[] { this_fiber::yield(); }}.join();
                        this_fiber::yield();
                        EXPECT_EQ(this_fiber::get_id(), id);
                        ++runs;
                    });
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(runs, 3 * fibers);
    });
}

TEST_F(exit_hooks_test, a_detached_fiber_runs_them_and_the_next_on_its_stack_does_not) {
    std::atomic<int> runs = 0;
    ums::run(one_processor, [&runs] {
        for (int i = 0; i < 100; ++i) {
            fiber{[&runs, i] {
                if (i % 2 == 0) at_exit([&runs] { ++runs; });
            }}.detach();
            this_fiber::yield();
        }
    });
    EXPECT_EQ(runs, 50);
}

// It is destroyed after the hooks have run that were registered later than it was made.
TEST_F(exit_hooks_test, a_thread_local_destructor_may_still_register_one) {
    static std::atomic<int> runs;
    struct late {
        ~late() {
            at_exit([] { ++runs; });
        }
    };
    std::thread{[] {
        thread_local const late last;
        (void)last;
        at_exit([] { ++runs; });
    }}.join();
    EXPECT_EQ(runs, 2);
}

const child_program main_thread{"main_thread", [](const child_arguments&) {
                                    at_exit([] { std::fputs("the main thread's hook\n", stderr); });
                                    return 0;
                                }};

TEST_F(exit_hooks_test, the_main_thread_runs_them_when_the_program_ends) {
    const child_end end = run_child("main_thread", {}, {});
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_NE(end.err.find("the main thread's hook"), end.err.npos) << end;
}

}  // namespace
