// SPDX-License-Identifier: MIT
//
// Asks a stray to stop at each instruction of its coming in, one after the other. By the time the
// stray continues, what it has left behind belongs to another thread.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>
#include <ucontext.h>

#include "os/signal/interrupt_signal.hpp"
#include "support/conservation.hpp"
#include "support/gate.hpp"
#include "support/round_robin.hpp"
#include "workers/left/stray.hpp"

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define NOT_STOPPED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NOT_STOPPED
#endif
#endif

class crossing_test : public conserving_test {};

constexpr greg_t trap_flag = 0x100;
// The steps end before the signals are blocked, SIGTRAP among them; the worker enters the seat
// within the first thirty.
constexpr int most_steps = 36;

int stop_at, steps;

// Runs after each instruction of a worker that is stepped.
void on_step(int, siginfo_t* info, void* frame) {
    auto& flags = static_cast<ucontext_t*>(frame)->uc_mcontext.gregs[REG_EFL];
    if (steps++ != stop_at) return;
    flags &= ~trap_flag;
    ums::scheduling::on_interrupt(*info, frame);
}

[[gnu::noinline]] void yield_step_by_step() {
    asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
    (void)ums_worker_yield(nullptr);
    asm volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
}

// Overwrites what was on this part of the stack. Returns true if no thread has written there until
// `is_over`.
[[gnu::noinline]] bool keep_the_stack(std::atomic<bool>& is_kept, std::atomic<bool>& is_over) {
    constexpr std::uint32_t pattern = 0xaaaaaaaa;
    volatile std::uint32_t all[4096];
    for (volatile std::uint32_t& x : all) x = pattern;
    is_kept = true;
    is_kept.notify_one();
    is_over.wait(false);
    return std::all_of(std::begin(all), std::end(all),
                       [](std::uint32_t x) { return x == pattern; });
}

TEST_F(crossing_test, a_stop_at_any_instruction_of_coming_in_writes_into_no_seat_that_was_left) {
#if defined(NOT_STOPPED)
    GTEST_SKIP() << "workers are not stopped by a signal under sanitizers";
#endif
    ::setenv("UMS_BLOCK", "monitor", 1);
    struct sigaction mine = {}, before;
    mine.sa_sigaction = &on_step;
    mine.sa_flags = SA_SIGINFO | SA_NODEFER;
    ASSERT_EQ(sigaction(SIGTRAP, &mine, &before), 0);
    for (stop_at = 0; stop_at < most_steps; ++stop_at) {
        steps = 0;
        completion_list list;
        raw_read_gate gate;
        std::atomic<bool> is_told = false, is_kept = false, is_over = false;
        test_worker w{list, [&] {
                          // Otherwise the library's own signal would come first.
                          sigset_t all_others;
                          sigfillset(&all_others);
                          sigdelset(&all_others, SIGTRAP);
                          pthread_sigmask(SIG_SETMASK, &all_others, nullptr);
                          EXPECT_TRUE(gate.pass());
                          while (!is_told) {
                          }
                          yield_step_by_step();
                      }};
        ums_context_t stray = 0;
        bool is_untouched = false;
        std::thread first{[&] {
            schedule(list, [&](ums_reason_t reason, std::uintptr_t, void*) {
                const bool is_startup = reason == UMS_REASON_STARTUP;
                if (!is_startup) {
                    is_told = true;
                    gate.open();
                }
                must(ums_completion_list_dequeue(list, UMS_NEVER, &stray));
                if (is_startup) (void)ums_worker_execute(stray);
            });
            is_untouched = keep_the_stack(is_kept, is_over);
        }};
        is_kept.wait(false);
        round_robin second{list, 1};
        second.ready.push_back(stray);
        second.run();
        is_over = true;
        is_over.notify_one();
        first.join();
        EXPECT_TRUE(is_untouched) << "stopped after " << stop_at << " instructions";
        EXPECT_GT(steps, stop_at) << "the yield is too short: fewer steps will do";
        if (HasFailure()) break;
    }
    sigaction(SIGTRAP, &before, nullptr);
    ::unsetenv("UMS_BLOCK");
}

}  // namespace
