// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/workloads/crowd.hpp: a workload of as many fibers at once as a runtime can hold.

#include <cstdint>
#include <string>
#include <vector>

#include "../workload.hpp"

namespace tool {

class crowd : public workload {
public:
    std::vector<std::string> runtimes() const override {
        return {"std::thread", "boost.fiber", "go", "ums"};
    }
    unsigned repetitions(const bench_options&) const override { return 3; }

    // One setting for each number of processors and of fibers; without --fibers, each runtime has
    // its own number.
    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override;

protected:
    // How many fibers a runtime has, threads excepted, if neither --fibers nor --quick says.
    virtual std::uint64_t own_number(const std::string& runtime) const = 0;
    // More arguments for the peers.
    virtual std::vector<std::string> more(const bench_options&) const { return {}; }
};

}  // namespace tool
