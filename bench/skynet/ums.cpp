// SPDX-License-Identifier: MIT

// skynet: every fiber spawns ten children, joins them and adds up what they left in its array.

#include <ums/ums.hpp>

#include <cstdint>
#include <stdexcept>

#include "../common/peer.hpp"
#include "../common/process.hpp"

namespace {

constexpr std::uint64_t fan_out = 10;

void skynet(const ums::fiber_options& how, std::uint64_t& result, std::uint64_t first,
            std::uint64_t leaves) {
    if (leaves == 1) {
        result = first;
        return;
    }
    const auto share = leaves / fan_out;
    std::uint64_t sums[fan_out];
    ums::fiber children[fan_out];
    for (std::uint64_t i = 0; i < fan_out; ++i)
        children[i] = ums::fiber{how, [&how, &sums, first, share, i] {
                                     skynet(how, sums[i], first + i * share, share);
                                 }};
    result = 0;
    for (std::uint64_t i = 0; i < fan_out; ++i) {
        children[i].join();
        result += sums[i];
    }
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto leaves = in.number("fibers", 1'000'000);
        const bool post = in.word("launch", {"dispatch", "post"}) == "post";
        in.done();

        const ums::fiber_options how{.launch = post ? ums::launch::post : ums::launch::dispatch};
        std::uint64_t sum = 0;
        std::uint64_t ns = 0;
        ums::run(ums::options{.processors = static_cast<unsigned>(processors)}, [&] {
            const auto begin = bench::now_ns();
            skynet(how, sum, 0, leaves);
            ns = bench::now_ns() - begin;
            return 0;
        });
        if (sum != leaves * (leaves - 1) / 2)
            throw std::runtime_error{"wrong sum " + std::to_string(sum)};
        out.add("ops", leaves).add("ns", ns).add("total_ns", ns);
        out.add("peak_rss_bytes", bench::status_bytes("VmHWM"));
    });
}
