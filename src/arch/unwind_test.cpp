// SPDX-License-Identifier: MIT
//
// What a profiler does: it unwinds from a signal, at each instruction of some switches.
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <type_traits>
#include <ucontext.h>
#include <unwind.h>
#include <vector>

#include <gtest/gtest.h>

#include "arch/context.hpp"
#include "support/conservation.hpp"
#include "support/no_detection.hpp"
#include "support/round_robin.hpp"
#include "support/scale.hpp"
#include "ums/ums.hpp"

extern "C" void _start() noexcept;

namespace {

struct {
    long left;     // So many instructions yet.
    long crashes;  // Of the unwinder.
    long wrong;    // It did not come to where the stack begins.
    std::uintptr_t last_wrong;
    bool unwinds;
    sigjmp_buf out;
} steps;

// Goes on to the outermost frame.
_Unwind_Reason_Code look_at_frame(_Unwind_Context* frame, void* last_) {
    const auto ip = static_cast<std::uintptr_t>(_Unwind_GetIP(frame));
    if (ip != 0) *static_cast<std::uintptr_t*>(last_) = ip;
    return _URC_NO_REASON;
}

// Where fibers, kernel threads and programs begin.
bool is_outermost(std::uintptr_t ip) {
    for (const auto first : {&ums::arch::ums_fiber_entry, &_start}) {
        const auto begin = reinterpret_cast<std::uintptr_t>(first);
        if (ip >= begin && ip < begin + 64) return true;
    }
    Dl_info in{};
    return dladdr(reinterpret_cast<void*>(ip), &in) != 0 &&
           std::strstr(in.dli_fname, "libc.so") != nullptr;
}

void on_step(int, siginfo_t*, void* context) {
    constexpr greg_t trap_flag = 0x100;
    greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    if (--steps.left <= 0) registers[REG_EFL] &= ~trap_flag;
    if (steps.left < 0) return;
    const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
    if (sigsetjmp(steps.out, 1) == 0) {
        steps.unwinds = true;
        std::uintptr_t last = 0;
        _Unwind_Backtrace(&look_at_frame, &last);
        // A linker's stubs may have no unwind tables.
        if (last != at && !is_outermost(last)) {
            ++steps.wrong;
            steps.last_wrong = at;
        }
    } else {
        ++steps.crashes;
        steps.last_wrong = at;
    }
    steps.unwinds = false;
}

void on_crash(int number) {
    if (steps.unwinds) siglongjmp(steps.out, 1);
    std::signal(number, SIG_DFL);
    std::raise(number);
}

void begin_steps(long n) {
    steps.left = n;
    asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
}

class unwind_test : public conserving_test {
protected:
    void SetUp() override {
        if (under_tsan || under_asan) GTEST_SKIP() << "a sanitizer's runtime is stepped through";
        std::uintptr_t last = 0;
        _Unwind_Backtrace(&look_at_frame, &last);  // It allocates when it is first used.
        steps = {};
        handle(SIGTRAP, &on_step, SA_SIGINFO | SA_ONSTACK);
        for (const int fault : {SIGSEGV, SIGBUS}) handle(fault, &on_crash, SA_ONSTACK | SA_NODEFER);
    }
    void TearDown() override {
        for (const changed& one : before_) sigaction(one.number, &one.action, nullptr);
        EXPECT_EQ(steps.crashes, 0) << "the last one at " << std::hex << steps.last_wrong;
        EXPECT_EQ(steps.wrong, 0) << "the last one at " << std::hex << steps.last_wrong;
    }

private:
    struct changed {
        int number;
        struct sigaction action;
    };
    template <class Handler>
    void handle(int number, Handler handler, int flags) {
        struct sigaction ours {};
        if constexpr (std::is_invocable_v<Handler, int>)
            ours.sa_handler = handler;
        else
            ours.sa_sigaction = handler;
        ours.sa_flags = flags;
        changed& one = before_.emplace_back();
        one.number = number;
        sigaction(number, &ours, &one.action);
    }
    std::vector<changed> before_;
};

constexpr long instructions = 30'000;

TEST_F(unwind_test, from_each_instruction_of_fibers_that_switch) {
    ums::options alone;
    alone.processors = 1;
    alone.time_slice_us = 0;
    alone.block = ums::block_detection::off;
    ums::run(alone, [] {
        bool over = false;
        std::vector<ums::fiber> all;
        all.emplace_back([&] {
            while (!over) ums::this_fiber::yield();
        });
        ums::counting_semaphore<> go{0}, come{0};
        all.emplace_back([&] {
            while (!over) {
                go.release();
                come.acquire();
            }
            go.release();
        });
        all.emplace_back([&] {
            while (!over) {
                come.release();
                go.acquire();
            }
            come.release();
        });
        all.emplace_back([&] {
            while (!over) ums::fiber{[] { ums::this_fiber::yield(); }}.join();
        });
        all.emplace_back([&] {
            const ums::fiber_options dispatched{.launch = ums::launch::dispatch};
            while (!over) ums::fiber{dispatched, [] {}}.join();
        });
        all.emplace_back([&] {
            while (!over) {
                const ums::keep_carrier kept;
                ums::this_fiber::yield();
            }
        });
        for (int i = 0; i < 20; ++i) ums::this_fiber::yield();
        begin_steps(instructions);
        while (steps.left > 0) ums::this_fiber::yield();
        over = true;
        for (ums::fiber& f : all) f.join();
    });
}

TEST_F(unwind_test, from_each_instruction_of_workers_that_switch) {
    {
        const ::completion_list list;
        const test_worker a{list, [] {
                                while (steps.left > 0) ums_worker_yield(nullptr);
                            }};
        const test_worker b{list, [] {
                                ums_worker_yield(nullptr);
                                begin_steps(instructions);
                                while (steps.left > 0) ums_worker_yield(nullptr);
                            }};
        steps.left = 1;
        round_robin both{list, 2};
        both.run();
    }
}

}  // namespace
