// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/workloads/two_ways.hpp: a workload that is done in one way by a fixed number of
// fibers, and in another way by as many as --fibers says; one table compares both.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../workload.hpp"

namespace tool {

class two_ways : public workload {
public:
    struct way {
        std::string_view name;  // The name that the peers know.
        std::uint64_t fibers;   // For the second way, unless --fibers says.
        // Stands under its bars; for the second way after the number of fibers.
        std::string_view label;
    };
    struct titles {
        std::string_view table;   // What a figure means.
        std::string_view fibers;  // The column with the number of fibers.
        std::string_view chart;
        std::string_view axis;
    };

    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "boost.fiber static", "go", "ums"};
    }
    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override;
    view show(const result& got) const override;

protected:
    two_ways(way first, way second, titles shown)
        : first_{first}, second_{second}, titles_{shown} {}

    // Adds what else a cell of this workload has.
    virtual void complete(cell&) const {}

private:
    setting group(const way& which, std::uint64_t processors, std::uint64_t fibers,
                  const bench_options& options, std::vector<std::string>& notes) const;

    way first_, second_;
    titles titles_;
};

}  // namespace tool
