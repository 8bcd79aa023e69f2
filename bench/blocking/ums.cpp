// SPDX-License-Identifier: MIT

// blocking: fibers, with each way to find out that a fiber has blocked. "marked": no detector, and
// ums::blocking() marks the calls.

#include <cstdlib>

#include "../common/on_ums.hpp"
#include "../common/peer.hpp"
#include "office.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::office_plan_of(in);
        const auto detector = in.word("detector", {"auto", "monitor", "off", "marked"});
        in.done();
        // The variable takes precedence over options, so one that is set for the whole run must be
        // overwritten.
        setenv("UMS_BLOCK", detector == "marked" ? "off" : detector.c_str(), 1);
        bench::office<bench::on_ums> all{plan};
        if (detector == "marked")
            all.run(out, [](auto block) { ums::blocking(block); });
        else
            all.run(out, [](auto block) { block(); });
    });
}
