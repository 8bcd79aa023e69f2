// SPDX-License-Identifier: MIT

// blocking: workers of the UMS API, on one scheduler thread for each processor. "marked": no
// detector, and the calls are between ums_worker_blocking_enter() and leave().
//
// told_p50_us, told_p99_us  from the moment a worker is about to block until its scheduler's
//                           procedure is called. If the worker was stopped in between, from the
//                           moment the scheduler executed it again.

#include <algorithm>
#include <cstdlib>

#include "../common/on_workers.hpp"
#include "../common/peer.hpp"
#include "office.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::office_plan_of(in);
        const auto detector = in.word("detector", {"auto", "monitor", "marked"});
        in.done();
        setenv("UMS_BLOCK", detector == "marked" ? "off" : detector.c_str(), 1);
        bench::office<bench::on_workers> all{plan};
        const bool is_marked = detector == "marked";
        all.run(out, [is_marked](auto block) {
            auto& own = bench::workers::own_job();
            own.blocks_since_ns = bench::now_ns();
            if (is_marked) ums_worker_blocking_enter();
            block();
            if (is_marked) ums_worker_blocking_leave();
            own.blocks_since_ns = 0;  // A call that did not block is not reported.
        });
        auto& told_ns = bench::workers::told_ns;
        std::sort(told_ns.begin(), told_ns.end());
        const auto at = [&](std::size_t percent) {
            return static_cast<double>(told_ns[(told_ns.size() - 1) * percent / 100]) / 1000.0;
        };
        if (!told_ns.empty()) out.add("told_p50_us", at(50)).add("told_p99_us", at(99));
    });
}
