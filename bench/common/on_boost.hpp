// SPDX-License-Identifier: MIT
#pragma once

// bench/common/on_boost.hpp: a workload on Boost.Fiber.

#include <boost/fiber/buffered_channel.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/mutex.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

#include "boost_workers.hpp"
#include "cell.hpp"
#include "urgency.hpp"

namespace bench {

struct on_boost {
    using runner = boost::fibers::fiber;
    static constexpr bool is_native = false;
    static void yield() { boost::this_fiber::yield(); }
    static void sleep_ns(std::uint64_t ns) {
        boost::this_fiber::sleep_for(std::chrono::nanoseconds{ns});
    }
    static void sleep_until(std::chrono::steady_clock::time_point limit) {
        boost::this_fiber::sleep_until(limit);
    }

    static void sleep_until_ns(std::uint64_t at) {
        // The steady clock is CLOCK_MONOTONIC, as now_ns().
        boost::this_fiber::sleep_until(
            std::chrono::steady_clock::time_point{std::chrono::nanoseconds{at}});
    }

    using mutex = boost::fibers::mutex;

    // What one runner at a time waits for, and others send when it is due. The library has nothing
    // like it: a channel is faster than a flag under a mutex with a condition variable.
    class signal {
    public:
        void send() { sent_.push(true); }
        void wait() { sent_.value_pop(); }

    private:
        boost::fibers::buffered_channel<bool> sent_{2};  // The least.
    };

    // The library's schedulers know neither urgency nor deadlines.
    template <class Body>
    static runner make(const urgency&, Body body) {
        return runner{std::move(body)};
    }
    static void set_due_ns(std::uint64_t) {}

    static void choose(cell&) {}
    static boost_scheduler choose_policy(cell& in) {
        return in.word("policy", {"usual", "shared_work"}) == "usual"
                   ? boost_scheduler::usual
                   : boost_scheduler::shared_work;
    }

    template <class Body>
    static void run(std::uint64_t processors, Body body,
                    boost_scheduler chosen = boost_scheduler::usual) {
        run_boost(processors, body, chosen);
    }
};

}  // namespace bench
