// SPDX-License-Identifier: MIT

// condvar: two fibers take turns under a mutex; then one fiber wakes all of many.

#include "two_ways.hpp"

namespace tool {

namespace {

class condvar final : public two_ways {
public:
    condvar()
        : two_ways{{"round_trip", 2, "round trip"},
                   {"notify_all", 100, "waiters"},
                   {"ns per round trip, per waiter of notify_all", "fibers", "condvar",
                    "ns per round trip, per waiter"}} {}

    std::string_view name() const override { return "condvar"; }
    std::string_view about() const override {
        return "mutex and condition variable: round trips, and notify_all";
    }
};

}  // namespace

std::unique_ptr<workload> make_condvar() { return std::make_unique<condvar>(); }

}  // namespace tool
