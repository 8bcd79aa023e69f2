// SPDX-License-Identifier: MIT
#include "os/signal/signal_stack.hpp"

#include <csignal>
#include <thread>

#include <gtest/gtest.h>

namespace {

using ums::os::signal_stack;

stack_t current() {
    stack_t now{};
    EXPECT_EQ(sigaltstack(nullptr, &now), 0);
    return now;
}

const void* volatile handler_frame;

void note_frame(int) {
    // A variable's address would not do: with use-after-return detection variables live elsewhere.
    handler_frame = __builtin_frame_address(0);
}

TEST(signal_stack, carries_a_handler_while_it_exists) {
    struct sigaction on_alternate {
    }, before{};
    on_alternate.sa_handler = note_frame;
    on_alternate.sa_flags = SA_ONSTACK;
    ASSERT_EQ(sigaction(SIGUSR1, &on_alternate, &before), 0);
    std::thread{[] {
        stack_t none{};
        none.ss_flags = SS_DISABLE;  // In case a sanitizer has set one.
        sigaltstack(&none, nullptr);
        {
            const signal_stack alternate;
            const stack_t now = current();
            ASSERT_EQ(now.ss_flags & SS_DISABLE, 0);
            raise(SIGUSR1);
            const auto* frame = static_cast<const char*>(const_cast<const void*>(handler_frame));
            const auto* bottom = static_cast<const char*>(now.ss_sp);
            EXPECT_GE(frame, bottom);
            EXPECT_LT(frame, bottom + now.ss_size);
        }
        EXPECT_NE(current().ss_flags & SS_DISABLE, 0);
    }}.join();
    sigaction(SIGUSR1, &before, nullptr);
}

TEST(signal_stack, leaves_one_alone_that_the_thread_has_already) {
    std::thread{[] {
        alignas(16) static char own[64 * 1024];
        stack_t mine{}, before{};
        mine.ss_sp = own;
        mine.ss_size = sizeof own;
        sigaltstack(&mine, &before);
        {
            const signal_stack alternate;
            EXPECT_EQ(current().ss_sp, own);
        }
        EXPECT_EQ(current().ss_sp, own);
        sigaltstack(&before, nullptr);
    }}.join();
}

}  // namespace
