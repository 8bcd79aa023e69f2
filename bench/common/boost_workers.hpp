// SPDX-License-Identifier: MIT
#pragma once

// bench/common/boost_workers.hpp: Boost.Fiber on one kernel thread, or on several.
//
// One thread uses round_robin, the library's default and its fastest scheduler. Several use
// work_stealing, which the library documents for this; it needs to know their number and waits
// until all have registered.
//
// shared_work is only for the workloads that compare policies. It runs a thread's main fiber, and
// its dispatcher, which ends sleeps, only when no other fiber is ready. So the body runs on a fiber
// of its own there: a main fiber that opens the start line for yielding fibers never gets to it.

#include <boost/fiber/algo/round_robin.hpp>
#include <boost/fiber/algo/shared_work.hpp>
#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>

#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

enum class boost_scheduler { usual, shared_work };

template <class Body>
void run_boost(std::uint64_t processors, Body body,
               boost_scheduler scheduler = boost_scheduler::usual) {
    namespace fibers = boost::fibers;
    const bool is_shared = scheduler == boost_scheduler::shared_work;
    const auto join_pool = [=] {
        if (is_shared)
            fibers::use_scheduling_algorithm<fibers::algo::shared_work>();
        else if (processors == 1)
            fibers::use_scheduling_algorithm<fibers::algo::round_robin>();
        else
            fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(
                static_cast<std::uint32_t>(processors));
    };

    fibers::mutex lock;
    fibers::condition_variable stopped;
    bool stop = false;
    std::vector<std::thread> workers;
    for (std::uint64_t i = 1; i < processors; ++i)
        workers.emplace_back([&] {
            join_pool();
            std::unique_lock held{lock};
            stopped.wait(held, [&] { return stop; });
        });
    join_pool();
    if (is_shared)
        fibers::fiber{body}.join();
    else
        body();
    {
        const std::lock_guard held{lock};
        stop = true;
    }
    stopped.notify_all();
    for (auto& worker : workers) worker.join();
}

}  // namespace bench
