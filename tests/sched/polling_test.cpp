// SPDX-License-Identifier: MIT
// variants: p1 migrate priority

// What must be polled (MPI requests, GPU queues, RDMA): try_yield() says whether anything else was
// ready, and a service that ends when nobody waits keeps no runtime alive (docs/polling.md).

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "ums/cluster.hpp"
#include "ums/event.hpp"
#include "ums/fiber.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
namespace this_fiber = ums::this_fiber;

class polling_test : public conserving_test {};

// A device that tells of nothing by itself: each operation is over after a number of looks.
class device {
public:
    struct operation {
        int looks_left;
        ums::manual_reset_event is_over{};
    };

    // Parks the calling fiber until the operation is over.
    void wait(operation& one) {
        bool begins = false;
        ums::fiber_ref paused;
        {
            const std::lock_guard guard{lock_};
            pending_.push_back(&one);
            begins = !std::exchange(is_served_, true);
            paused = std::exchange(paused_, {});
        }
        if (begins)
            ums::fiber{[this] { serve(); }}.detach();
        else if (paused)
            paused.unpark();
        one.is_over.wait();
    }

    std::atomic<int> services = 0, pauses = 0;

private:
    // The service: it lives while somebody waits.
    void serve() {
        services++;
        for (;;) {
            {
                const std::lock_guard guard{lock_};
                std::erase_if(pending_, [](operation* each) {
                    if (--each->looks_left > 0) return false;
                    each->is_over.set();
                    return true;
                });
                if (pending_.empty()) {
                    is_served_ = false;
                    return;
                }
            }
            if (this_fiber::try_yield()) continue;
            {
                const std::lock_guard guard{lock_};
                paused_ = this_fiber::ref();
            }
            pauses++;
            this_fiber::park_until(ums::deadline_after(10us));  // The next time.
            const std::lock_guard guard{lock_};
            paused_ = {};
        }
    }

    ums::mutex lock_;
    // Guarded by lock_:
    std::vector<operation*> pending_;
    ums::fiber_ref paused_;
    bool is_served_ = false;
};

TEST_F(polling_test, try_yield_says_whether_another_fiber_ran) {
    ums::run(one_processor, [] {
        EXPECT_FALSE(this_fiber::try_yield());
        bool ran = false;
        ums::fiber other{[&] { ran = true; }};
        EXPECT_TRUE(this_fiber::try_yield());
        EXPECT_TRUE(ran);
        other.join();
        EXPECT_FALSE(this_fiber::try_yield());
    });
}

TEST_F(polling_test, try_yield_says_so_for_each_of_many_rounds) {
    ums::run(one_processor, [] {
        int turns = 0;
        ums::fiber other{[&] {
            while (turns < 1000) {
                ++turns;
                this_fiber::yield();
            }
        }};
        // More than the 61 of a round, at whose end the processor looks elsewhere.
        for (int i = 1; i < 1000; ++i) {
            EXPECT_TRUE(this_fiber::try_yield());
            EXPECT_EQ(turns, i);
        }
        other.join();
    });
}

TEST_F(polling_test, try_yield_of_a_plain_thread_is_false) {
    EXPECT_FALSE(this_fiber::try_yield());
}

TEST_F(polling_test, a_fiber_that_becomes_ready_elsewhere_ends_a_loop_of_tries) {
    ums::run(one_processor, [] {
        std::atomic<bool> ran = false;
        ums::cluster& home = ums::cluster::standard();
        std::thread outside{[&] { home.post([&] { ran = true; }); }};
        while (!this_fiber::try_yield()) {
        }
        EXPECT_TRUE(ran);
        outside.join();
    });
}

TEST_F(polling_test, a_service_that_ends_when_nobody_waits_keeps_no_runtime_alive) {
    device polled;
    ums::run([&] {
        std::vector<ums::fiber> users;
        for (int i = 0; i < 50; ++i)
            users.emplace_back([&polled, i] {
                for (int k = 1; k < 20; ++k) {
                    device::operation one{1 + i * k % 7};
                    polled.wait(one);
                    EXPECT_LE(one.looks_left, 0);
                }
            });
        for (ums::fiber& each : users) each.join();
    });
    EXPECT_GE(polled.services, 1);
}

TEST_F(polling_test, a_service_with_nothing_else_to_run_pauses_until_its_next_time) {
    device polled;
    ums::run(one_processor, [&] {
        device::operation one{100};
        polled.wait(one);
    });
    EXPECT_EQ(polled.services, 1);
    EXPECT_EQ(polled.pauses, 99);
}

}  // namespace
