// SPDX-License-Identifier: MIT
#pragma once

// bench/common/on_ums.hpp: a workload on libums.

#include <ums/ums.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "cell.hpp"
#include "urgency.hpp"

namespace bench {

struct on_ums {
    using runner = ums::fiber;
    static constexpr bool is_native = false;
    static void yield() { ums::this_fiber::yield(); }
    static void sleep_ns(std::uint64_t ns) {
        ums::this_fiber::sleep_for(std::chrono::nanoseconds{ns});
    }
    static void sleep_until(std::chrono::steady_clock::time_point limit) {
        ums::this_fiber::sleep_until(limit);
    }

    static void sleep_until_ns(std::uint64_t at) { ums::this_fiber::sleep_until(deadline(at)); }

    using mutex = ums::mutex;

    // What one runner at a time waits for, and others send when it is due.
    class signal {
    public:
        void send() { sent_.release(); }
        void wait() { sent_.acquire(); }

    private:
        ums::binary_semaphore sent_{0};
    };

    template <class Body>
    static runner make(const urgency& how, Body body) {
        return runner{{.priority = how.priority, .weight = how.weight, .group = how.group},
                      std::move(body)};
    }
    // The deadline of what the calling fiber does next. Call it before the wait for that.
    static void set_due_ns(std::uint64_t at) { ums::this_fiber::ref().set_deadline(deadline(at)); }

    // What the cell asks of this runtime alone: the detector of blocking. Call it before the
    // runtime starts. If the cell names none, the environment's detector counts, or the best there
    // is.
    static void choose(cell& in) {
        const auto detector = in.word("detector", {"", "auto", "monitor", "off"});
        if (!detector.empty()) setenv("UMS_BLOCK", detector.c_str(), 1);
    }

    static ums::options choose_policy(cell& in) {
        const auto name = in.word("policy", {"work_stealing", "global_fifo", "local_locked",
                                             "local_mpsc", "local_mpsc_intrusive", "priority",
                                             "earliest_deadline_first", "fair_share"});
        return {.policy = *ums::policy_named(name)};
    }

    template <class Body>
    static void run(std::uint64_t processors, Body body, ums::options chosen = {}) {
        chosen.processors = static_cast<unsigned>(processors);
        ums::run(chosen, [&] {
            body();
            return 0;
        });
    }

private:
    static ums::deadline deadline(std::uint64_t at) {
        return ums::deadline{std::chrono::nanoseconds{at}};
    }
};

}  // namespace bench
