// SPDX-License-Identifier: MIT

// skynet: every kernel thread starts ten and adds up their results. The driver gives it fewer
// leaves than the other runtimes: all inner threads and the children they wait for exist at once.

#include <cstdint>
#include <stdexcept>
#include <thread>

#include "../common/peer.hpp"
#include "../common/process.hpp"

namespace {

constexpr std::uint64_t fan_out = 10;

void skynet(std::uint64_t& result, std::uint64_t first, std::uint64_t leaves) {
    if (leaves == 1) {
        result = first;
        return;
    }
    const auto share = leaves / fan_out;
    std::uint64_t sums[fan_out];
    std::thread children[fan_out];
    for (std::uint64_t i = 0; i < fan_out; ++i)
        children[i] =
            std::thread{[&sums, first, share, i] { skynet(sums[i], first + i * share, share); }};
    result = 0;
    for (std::uint64_t i = 0; i < fan_out; ++i) {
        children[i].join();
        result += sums[i];
    }
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1024);
        const auto leaves = in.number("fibers", 1000);
        in.done();

        std::uint64_t sum = 0;
        const auto begin = bench::now_ns();
        skynet(sum, 0, leaves);
        const auto ns = bench::now_ns() - begin;
        if (sum != leaves * (leaves - 1) / 2)
            throw std::runtime_error{"wrong sum " + std::to_string(sum)};
        out.add("ops", leaves).add("ns", ns).add("total_ns", ns);
        out.add("peak_rss_bytes", bench::status_bytes("VmHWM"));
    });
}
