// SPDX-License-Identifier: MIT

// pingpong: two fibers wake each other in turn with park and unpark. One operation is a round trip:
// two wake-ups. With kept=1 pong keeps its kernel thread (ums::keep_carrier).

#include <optional>

#include <ums/ums.hpp>

#include "../common/detector.hpp"
#include "../common/peer.hpp"

namespace {

constexpr std::uint64_t trips = 10'000;

// The caller is ping.
bench::tally rally(bool is_kept) {
    const auto ping = ums::this_fiber::ref();
    ums::fiber pong{[ping, is_kept] {
        std::optional<ums::keep_carrier> kept;
        if (is_kept) kept.emplace();
        for (std::uint64_t i = 0; i < trips; ++i) {
            ums::this_fiber::park();
            ping.unpark();
        }
    }};
    const auto other = pong.ref();
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < trips; ++i) {
        other.unpark();
        ums::this_fiber::park();
    }
    const auto ns = bench::now_ns() - begin;
    pong.join();
    return {trips, ns};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        in.number("fibers", 2, 2, 2);
        const bool is_kept = in.number("kept", 0, 0, 1) != 0;
        const auto min_ms = in.number("min_ms", 100, 0);
        bench::use_detector(in);
        in.done();

        bench::tally sum;
        ums::run(ums::options{.processors = static_cast<unsigned>(processors)}, [&] {
            sum = bench::repeat(min_ms, [is_kept] { return rally(is_kept); });
            return 0;
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
