// SPDX-License-Identifier: MIT
#include "carry/detect/sentinel.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/cpu/topology.hpp"
#include "os/futex.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"

namespace {

using namespace ums;
using carry::sentinel;

// Runs on a thread that is confined to the first CPU, because the sentinel inherits that.
template <class F>
void on_one_cpu(F f) {
    std::thread{[&] {
        os::pin_this_thread(0);
        f();
    }}.join();
}

class sentinel_test : public conserving_test {};

TEST_F(sentinel_test, calls_once_for_each_arm_when_the_cpu_is_free) {
    on_one_cpu([] {
        sentinel* s = sentinel::start();
        ASSERT_NE(s, nullptr);
        for (int i = scaled(1000, 100); i != 0; --i) {
            EXPECT_EQ(s->word.load(base::relaxed), sentinel::called);
            s->word.store(sentinel::watching, base::relaxed);
            s->arm();
            while (s->word.load(base::relaxed) == sentinel::watching)
                os::futex_wait(s->word, sentinel::watching);
        }
        s->stop();
    });
}

TEST_F(sentinel_test, leaves_a_waiter_alone_that_does_not_watch) {
    on_one_cpu([] {
        sentinel* s = sentinel::start();
        ASSERT_NE(s, nullptr);
        s->word.store(sentinel::asleep, base::relaxed);
        s->arm();  // Perhaps seen before the next, perhaps not.
        std::this_thread::yield();
        EXPECT_EQ(s->word.load(base::relaxed), sentinel::asleep);
        s->word.store(sentinel::watching, base::relaxed);
        s->arm();
        while (s->word.load(base::relaxed) == sentinel::watching)
            os::futex_wait(s->word, sentinel::watching);
        s->stop();
    });
}

// Runs in the child. Returns the class of the sentinel's thread for an ordinary user; -1: there is
// none.
int class_of_a_sentinel(const child_arguments&) {
    constexpr uid_t ordinary = 65'534;
    if (::geteuid() == 0 && ::setresuid(ordinary, ordinary, ordinary) != 0) return 77;
    int found = -1;
    on_one_cpu([&found] {
        sentinel* s = sentinel::start();
        if (s == nullptr) return;
        s->word.store(sentinel::watching, base::relaxed);
        s->arm();
        while (s->word.load(base::relaxed) == sentinel::watching)
            os::futex_wait(s->word, sentinel::watching);
        for (const auto& thread : std::filesystem::directory_iterator{"/proc/self/task"}) {
            std::ifstream file{thread.path() / "comm"};
            std::string name;
            std::getline(file, name);
            if (name == "ums sentinel")
                found = conservation::policy_of(thread.path().filename().string());
        }
        s->stop();
    });
    return found;
}
const child_program ordinary_user{"ordinary user", class_of_a_sentinel};

TEST_F(sentinel_test, an_ordinary_users_is_of_the_lowest_class) {
    const child_end end = run_child("ordinary user");
    if (end.code == 77) GTEST_SKIP() << "the test may not change its user";
    EXPECT_EQ(end.code, SCHED_IDLE) << end;
}

// While another thread loops, a thread of the lowest class may get no turn for seconds.
TEST_F(sentinel_test, one_that_gets_no_cpu_is_left_and_collected_later) {
    const auto before = conservation::threads();
    std::atomic<bool> is_over{false};
    std::thread loop{[&] {
        os::pin_this_thread(0);
        while (!is_over) {
        }
    }};
    on_one_cpu([] {
        for (int i = 0; i < 8; ++i)
            if (sentinel* s = sentinel::start()) s->stop();
    });
    is_over = true;
    loop.join();
    while (conservation::threads() != before)
        on_one_cpu([] {
            if (sentinel* s = sentinel::start()) s->stop();
        });
}

}  // namespace
