// SPDX-License-Identifier: MIT

// preemption: fibers with time slices, with each detector of blocking.

#include <cstdlib>

#include "../common/on_ums.hpp"
#include "../common/peer.hpp"
#include "loops.hpp"

namespace {

struct preemptive : bench::on_ums {
    static inline std::uint32_t slice_us = 0;

    template <class Body>
    static void run(std::uint64_t processors, Body body) {
        on_ums::run(processors, body, {.time_slice_us = slice_us});
    }
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::loops_plan_of(in);
        preemptive::slice_us =
            static_cast<std::uint32_t>(in.number("slice_us", 1000, 100, 10'000'000));
        const auto detector = in.word("detector", {"auto", "monitor"});
        in.done();
        // The variable takes precedence over options, so one that is set for the whole run must be
        // overwritten.
        setenv("UMS_BLOCK", detector.c_str(), 1);
        bench::measure_loops<preemptive>(plan, out);
    });
}
