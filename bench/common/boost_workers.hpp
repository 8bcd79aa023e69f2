// SPDX-License-Identifier: MIT
#pragma once

// bench/common/boost_workers.hpp: Boost.Fiber on one kernel thread, or on several.
//
// One thread uses round_robin, the library's default and its fastest scheduler. Several use
// work_stealing, which the library documents for this; it needs to know their number and waits
// until all have registered. Rejected: shared_work, which runs a thread's main fiber only when no
// other is ready, so a main fiber that opens the start line for yielding fibers never gets to it.

#include <boost/fiber/algo/round_robin.hpp>
#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>

#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

template <class Body>
void run_boost(std::uint64_t processors, Body body) {
    namespace fibers = boost::fibers;
    const auto join_pool = [=] {
        if (processors == 1)
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
    body();
    {
        const std::lock_guard held{lock};
        stop = true;
    }
    stopped.notify_all();
    for (auto& worker : workers) worker.join();
}

}  // namespace bench
