// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/runner.hpp: runs every cell of a plan several times.
//
// Interleaved: each repetition visits all settings, each setting all its runtimes, and the runtime
// that goes first changes, so that a slow moment of the machine hits all alike. A cell that fails
// once is not run again; it keeps its error.

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "cell.hpp"
#include "progress.hpp"

namespace tool {

class runner {
public:
    // No repetition begins if it would not end within `limit_s`; 0 means no limit.
    runner(std::string bench, std::vector<setting>& plan, progress& shown, double limit_s);

    void run(unsigned repetitions);

private:
    template <class Use>
    void for_each(Use use) const {
        for (auto& group : plan_)
            for (auto& one : group) use(one);
    }
    void probe(cell& one);
    void choose_variant(cell& one);
    void choose_yields(cell& one);
    void find_equals();
    void measure(cell& one);
    void show(progress::step which, const cell& one, const std::string& stage);
    double elapsed_s() const;
    double left_s() const;

    std::string bench_;
    std::vector<setting>& plan_;
    progress& shown_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    double limit_s_;
    unsigned repetitions_ = 0;
    std::size_t runs_done_ = 0;
    std::size_t runs_all_ = 0;
    // The result of each probe, by its command: settings that differ only in what the probe
    // overrides share it.
    std::map<std::string, double> ns_per_op_;
};

}  // namespace tool
