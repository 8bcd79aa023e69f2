// SPDX-License-Identifier: MIT
#pragma once

// bench/policies/probe.hpp: an urgent runner that a timer, or a plain thread, wakes every now and
// then while others work: how long after that does it run?

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "../common/clock.hpp"
#include "../common/lateness.hpp"
#include "../common/line.hpp"
#include "../common/urgency.hpp"

namespace bench {

template <class Runtime>
class probe {
public:
    // It has everything that makes a fiber urgent under one policy or another.
    explicit probe(bool has_thread)
        : runner_{Runtime::make({.priority = 3, .weight = 10'000, .group = 1}, [this, has_thread] {
              if (has_thread)
                  wait_for_thread();
              else
                  sleep();
          })} {
        if (has_thread) thread_ = std::thread{[this] { wake(); }};
    }

    // Requires: end() has been called before the end of its life.
    void end() {
        stop_ = true;
        runner_.join();
        if (thread_.joinable()) thread_.join();
    }

    // Requires: end().
    void add_to(line& out) {
        std::sort(waits_.begin(), waits_.end());
        out.add("wake_p50_us", quantile_us(waits_, 0.5));
        out.add("wake_p99_us", quantile_us(waits_, 0.99));
    }

private:
    // Not at regular intervals, which could keep step with the work of the others.
    static std::uint64_t pause_ns(std::uint64_t index) {
        return 100'000 + sleep_ns(index, 100'000);
    }

    void sleep() {
        do {
            const auto at = now_ns() + pause_ns(waits_.size());
            Runtime::set_due_ns(at);
            Runtime::sleep_until_ns(at);
            waits_.push_back(now_ns() - at);
        } while (!stop_);
    }

    void wait_for_thread() {
        do {
            Runtime::set_due_ns(1);  // Overdue: due when it is ready.
            woken_.wait();
            waits_.push_back(now_ns() - woken_at_);
            is_awake_ = true;
        } while (!stop_);
        is_over_ = true;
    }

    void wake() {
        for (std::uint64_t i = 0; !is_over_; ++i) {
            std::this_thread::sleep_for(std::chrono::nanoseconds{pause_ns(i)});
            if (!is_awake_.exchange(false)) continue;  // Still on its way.
            woken_at_ = now_ns();
            woken_.send();
        }
    }

    std::atomic<bool> stop_{false};
    std::vector<std::uint64_t> waits_;
    // For a thread that wakes it:
    typename Runtime::signal woken_;
    std::atomic<bool> is_awake_{true}, is_over_{false};
    std::atomic<std::uint64_t> woken_at_{0};
    typename Runtime::runner runner_;
    std::thread thread_;
};

}  // namespace bench
