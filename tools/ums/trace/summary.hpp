// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/summary.hpp: the sums of a trace: how long fibers wait for a processor, and how
// the fibers of each start function spend their time.

#include <cstdio>
#include <map>
#include <unordered_map>
#include <vector>

#include "sink.hpp"

namespace tool::tracing {

class summary final : public sink {
public:
    void processor(std::uint32_t, std::string_view) override { ++processors_; }
    void fiber(std::uint64_t id, std::string_view name, std::string_view start) override;
    void add(const span& s) override;
    void add(const moment&) override {}

    void print() const;
    [[nodiscard]] std::string json() const;

private:
    struct group {
        std::uint64_t fibers = 0, runs = 0;
        std::int64_t runs_ns = 0, ready_ns = 0, blocked_ns = 0;
        std::map<std::string, std::int64_t> waits_ns;  // By kind.
    };
    std::map<std::string, group> groups_;  // By start function.
    std::unordered_map<std::uint64_t, group*> group_of_;
    std::vector<std::int64_t> in_queue_, woken_to_run_;
    std::uint32_t processors_ = 0;
};

}  // namespace tool::tracing
