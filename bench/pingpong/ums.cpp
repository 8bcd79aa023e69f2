// SPDX-License-Identifier: MIT

// pingpong: two fibers wake each other in turn with park and unpark. One operation is a round trip:
// two wake-ups. With kept=1 pong keeps its kernel thread (ums::keep_carrier).

#include <optional>

#include "../common/on_ums.hpp"
#include "../common/rally.hpp"

namespace {

constexpr std::uint64_t trips = 10'000;
bool is_kept = false;  // Set once, before the runtime starts.

// The caller is ping.
bench::tally rally() {
    const auto ping = ums::this_fiber::ref();
    ums::fiber pong{[ping] {
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
    return bench::run_rally_peer<bench::on_ums>(
        argc, argv, rally, [](bench::cell& in) { is_kept = in.number("kept", 0, 0, 1) != 0; });
}
