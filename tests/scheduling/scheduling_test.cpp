// SPDX-License-Identifier: MIT
// variants: clang
//
// The UMS API in C++.

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/no_detection.hpp"
#include "ums/ums.hpp"

namespace {

class scheduling_test : public conserving_test {};

TEST_F(scheduling_test, workers_take_turns_as_the_program_decides) {
    ums::completion_list list;
    std::vector<int> order;
    std::vector<ums::worker> workers;
    for (int id = 0; id < 3; ++id)
        workers.emplace_back(
            list,
            [&order, id](int turns) {
                for (int i = 0; i < turns; ++i) {
                    order.push_back(id);
                    EXPECT_TRUE(ums::yield_worker(&order));
                }
                const ums::worker_blocking region;
            },
            2);
    std::deque<ums::worker_ref> ready;
    int ended = 0;
    ums::schedule(list, [&](const ums::scheduler_event& e) {
        if (e.why == ums::scheduler_event::yield) {
            EXPECT_EQ(e.argument, &order);
            ready.push_back(e.who);
        }
        EXPECT_EQ(e.in_syscall, e.why == ums::scheduler_event::blocked);
        while (ended < 3) {
            for (const ums::worker_ref w : ready.empty() ? list.dequeue() : list.try_dequeue()) {
                if (w.is_terminated())
                    ++ended;
                else
                    ready.push_back(w);
            }
            if (ready.empty()) continue;
            const ums::worker_ref next = ready.front();
            ready.pop_front();
            EXPECT_FALSE(next.is_suspended());
            // Outside of the macro, because what is on this stack is dropped when it executes a
            // worker.
            const std::error_code refused = next.execute();
            ADD_FAILURE() << refused;
        }
    });
    EXPECT_EQ(order.size(), 6u);
    int data = 0;
    workers[0].ref().set_user_data(&data);
    EXPECT_EQ(workers[0].ref().user_data(), &data);
    for (ums::worker& w : workers) w.join();
    EXPECT_TRUE(list.try_dequeue().empty());
    EXPECT_TRUE(list.dequeue_until(1).empty());
}

TEST_F(scheduling_test, a_worker_takes_a_function_and_arguments_that_can_only_be_moved) {
    ums::completion_list list;
    int sum = 0;
    ums::worker a{list, [&sum, p = std::make_unique<int>(1)] { sum += *p; }};
    ums::worker b{list, [&sum](std::unique_ptr<int> p) { sum += *p; }, std::make_unique<int>(20)};
    ums::worker c{list, [](int& to, const int& n) { to += n; }, std::ref(sum), 300};
    std::deque<ums::worker_ref> ready;
    int ended = 0;
    ums::schedule(list, [&](const ums::scheduler_event&) {
        while (ended < 3) {
            for (const ums::worker_ref w : ready.empty() ? list.dequeue() : list.try_dequeue())
                w.is_terminated() ? void(++ended) : ready.push_back(w);
            if (ready.empty()) continue;
            const ums::worker_ref next = ready.front();
            ready.pop_front();
            next.execute();
        }
    });
    EXPECT_EQ(sum, 321);
    for (ums::worker* w : {&a, &b, &c}) w->join();
}

TEST_F(scheduling_test, errors_are_those_of_the_c_functions) {
    ums::completion_list list;
    EXPECT_EQ(ums::worker_ref{}.execute(), std::errc::operation_not_permitted);
    EXPECT_FALSE(ums::yield_worker());
    EXPECT_THROW(ums::worker_ref{77}.set_user_data(nullptr), std::system_error);
    EXPECT_THROW(ums::worker{}.join(), std::system_error);
    ums::schedule(list, [&](const ums::scheduler_event&) {
        EXPECT_THROW(ums::schedule(list, [](const ums::scheduler_event&) {}), std::system_error);
    });
}

}  // namespace
