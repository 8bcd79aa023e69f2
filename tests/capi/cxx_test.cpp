// SPDX-License-Identifier: MIT
#include <ums/ums.h>
#include <ums/ums.hpp>
#include <ums/ums_pthread.h>

#include <atomic>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "support/conservation.hpp"

namespace {

class capi_cxx_test : public conserving_test {};

// Beside the C++ headers, and with the same objects underneath.
TEST_F(capi_cxx_test, c_and_cxx_meet_in_one_program) {
    ums_options_t options = UMS_OPTIONS_INIT;
    options.processors = 2;
    int ran = 0;
    auto body = [](void* argument) {
        EXPECT_EQ(ums_this_fiber_id(), ums::this_fiber::get_id().value());
        ums_mutex_t m = UMS_MUTEX_INIT;
        EXPECT_EQ(ums_mutex_lock(&m), 0);
        ums::fiber{[&] { EXPECT_EQ(ums_mutex_trylock(&m), -EBUSY); }}.join();
        EXPECT_EQ(ums_mutex_unlock(&m), 0);
        *static_cast<int*>(argument) = 1;
    };
    EXPECT_EQ(ums_run(&options, body, &ran), 0);
    EXPECT_EQ(ran, 1);
}

TEST_F(capi_cxx_test, a_recursive_mutex_that_was_locked_too_often_says_so) {
    ums_mutex_t m = UMS_RECURSIVE_MUTEX_INIT;
    ums_stop_t* stop = nullptr;
    ASSERT_EQ(ums_stop_create(&stop), 0);
    ASSERT_EQ(ums_mutex_lock(&m), 0);
    auto set_depth = [&m](std::uint32_t depth) {
        std::memcpy(reinterpret_cast<char*>(&m) + offsetof(ums::impl::mutex_state, depth), &depth,
                    sizeof depth);
    };
    set_depth(~std::uint32_t{0});
    EXPECT_EQ(ums_mutex_lock(&m), -EAGAIN);
    EXPECT_EQ(ums_mutex_lock_until(&m, UMS_NEVER, nullptr), -EAGAIN);
    EXPECT_EQ(ums_mutex_lock_until(&m, 0, stop), -EAGAIN);
    EXPECT_EQ(ums_mutex_trylock(&m), -EBUSY);
    set_depth(1);
    EXPECT_EQ(ums_mutex_unlock(&m), 0);
    ums_stop_destroy(stop);
}

// Like pthread_exit() in a std::thread: the stack is unwound, and the joiner continues.
TEST_F(capi_cxx_test, a_fiber_made_in_cxx_may_exit_as_a_thread) {
    ums::run({.processors = 2}, [] {
        struct counts {
            std::atomic<int>& n;
            ~counts() { ++n; }
        };
        std::atomic<int> unwound = 0;
        const auto leave = [&unwound] {
            const counts one{unwound};
            ums_pthread_exit(nullptr);
        };
        ums::fiber{leave}.join();
        ums::jfiber{leave}.join();
        ums::fiber{{.launch = ums::launch::dispatch}, leave}.join();
        ums::fiber{leave}.detach();
        while (unwound < 4) ums::this_fiber::yield();
    });
}

}  // namespace
