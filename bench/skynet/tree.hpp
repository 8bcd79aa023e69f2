// SPDX-License-Identifier: MIT
#pragma once

// bench/skynet/tree.hpp: the workload of all skynet peers: every runner makes ten, and adds up what
// they found.

#include <stdexcept>
#include <string>

#include "../common/peer.hpp"
#include "../common/process.hpp"

namespace bench {

constexpr std::uint64_t fan_out = 10;

// Joins the children, and adds up what they left in its array. `how` comes before the body in the
// runner's constructor. Static, like a program's own function, because g++ inlines differently if
// other files could call it, and a fiber then takes 27 instructions more.
template <class Runner, class... How>
static void skynet(std::uint64_t& result, std::uint64_t first, std::uint64_t leaves,
                   const How&... how) {
    if (leaves == 1) {
        result = first;
        return;
    }
    const auto share = leaves / fan_out;
    std::uint64_t sums[fan_out];
    Runner children[fan_out];
    for (std::uint64_t i = 0; i < fan_out; ++i)
        children[i] = Runner{how..., [&how..., &sums, first, share, i] {
                                 skynet<Runner>(sums[i], first + i * share, share, how...);
                             }};
    result = 0;
    for (std::uint64_t i = 0; i < fan_out; ++i) {
        children[i].join();
        result += sums[i];
    }
}

// root() returns the sum of all leaves.
template <class Runtime, class Root>
void measure_skynet(std::uint64_t processors, std::uint64_t leaves, line& out, Root root) {
    std::uint64_t sum = 0;
    std::uint64_t ns = 0;
    Runtime::run(processors, [&] {
        const auto begin = now_ns();
        sum = root();
        ns = now_ns() - begin;
    });
    if (sum != leaves * (leaves - 1) / 2)
        throw std::runtime_error{"wrong sum " + std::to_string(sum)};
    out.add("ops", leaves).add("ns", ns).add("total_ns", ns);
    out.add("peak_rss_bytes", status_bytes("VmHWM"));
}

template <class Runtime, class... How>
void measure_skynet_of_joins(std::uint64_t processors, std::uint64_t leaves, line& out,
                             const How&... how) {
    measure_skynet<Runtime>(processors, leaves, out, [&] {
        std::uint64_t sum = 0;
        skynet<typename Runtime::runner>(sum, 0, leaves, how...);
        return sum;
    });
}

}  // namespace bench
