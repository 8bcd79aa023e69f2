// SPDX-License-Identifier: MIT

// blocking: fibers, with each way to find out that one has blocked. "marked": no detector, and the calls are marked by
// ums::blocking().

#include <cstdlib>

#include "../common/on_ums.hpp"
#include "../common/peer.hpp"
#include "office.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto plan = bench::office_plan_of(in);
        const auto detector = in.word("detector", {"auto", "monitor", "off", "marked"});
        in.done();
        // The variable wins over options, so that one which is set for the whole run must not get its way.
        setenv("UMS_BLOCK", detector == "marked" ? "off" : detector.c_str(), 1);
        bench::office<bench::on_ums> all{plan};
        if (detector == "marked")
            all.run(out, [](auto block) { ums::blocking(block); });
        else
            all.run(out, [](auto block) { block(); });
    });
}
