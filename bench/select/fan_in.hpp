// SPDX-License-Identifier: MIT
#pragma once

// bench/select/fan_in.hpp: the workload of all select peers that are written in C++: one receiver
// takes whatever comes first from 2 or 8 channels, each of which has a sender of its own.
//
// way=unbuffered: channels without places. way=buffered: channels of 64 places. One operation is an
// item.
//
// A peer's Inputs<N> are N channels: send(i, int), and receive(), which takes one item from any of
// them.

#include <cstddef>
#include <stdexcept>

#include "../common/crew.hpp"
#include "../common/peer.hpp"

namespace bench {

inline constexpr std::size_t places = 64;

template <class Runtime, class Inputs, std::uint64_t N>
tally fan_in(std::size_t places_each) {
    constexpr std::uint64_t each = (Runtime::is_native ? 4'000 : 40'000) / N;
    Inputs inputs{places_each};
    std::uint64_t sum = 0;
    const auto ns = run_crew<Runtime>(N + 1, [&](std::uint64_t i) {
        if (i < N) {
            for (std::uint64_t n = 0; n < each; ++n) inputs.send(i, 1);
            return;
        }
        for (std::uint64_t n = 0; n < N * each; ++n)
            sum += static_cast<std::uint64_t>(inputs.receive());
    });
    if (sum != N * each) throw std::runtime_error{"items were lost"};
    return {N * each, ns};
}

template <class Runtime, template <std::size_t> class Inputs>
int run_select_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const bool is_buffered = in.word("way", {"unbuffered", "buffered"}) == "buffered";
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 3, 3, 9);
        const auto min_ms = in.number("min_ms", 100, 0);
        in.done();
        if (fibers != 3 && fibers != 9)
            throw std::invalid_argument{
                "fibers: expected 3 or 9, the receiver and a sender for each channel"};

        tally sum;
        Runtime::run(processors, [&] {
            sum = repeat(min_ms, [=] {
                const std::size_t each = is_buffered ? places : 0;
                return fibers == 3 ? fan_in<Runtime, Inputs<2>, 2>(each)
                                   : fan_in<Runtime, Inputs<8>, 8>(each);
            });
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}

}  // namespace bench
