// SPDX-License-Identifier: MIT
#pragma once

// bench/channel/traffic.hpp: the workload of all channel peers that are written in C++.
//
// way=unbuffered: two runners pass a token through two channels without places. One operation is a
// round trip.
//
// way=buffered, way=unbounded: half of the runners send into one channel (of 64 places, or of any
// number), the other half receive from it until it is closed. One operation is an item that went
// through.
//
// A peer names its channels: types with send(int), receive(int&), which is false at the end, and
// close(). `void` for what the runtime does not have.

#include <atomic>
#include <stdexcept>
#include <type_traits>

#include "../common/crew.hpp"
#include "../common/peer.hpp"

namespace bench {

inline constexpr std::size_t places = 64;

template <class Runtime, class Channel>
tally rally() {
    constexpr std::uint64_t trips = Runtime::is_native ? 1'000 : 2'000;
    Channel there;
    Channel back;
    typename Runtime::runner other{[&] {
        for (int token = 0; there.receive(token);) back.send(token);
    }};
    int token = 1;
    const auto begin = now_ns();
    for (std::uint64_t i = 0; i < trips; ++i) {
        there.send(token);
        back.receive(token);
    }
    const auto ns = now_ns() - begin;
    there.close();
    other.join();
    return {trips, ns};
}

template <class Runtime, class Channel>
tally stream(std::uint64_t pairs) {
    const std::uint64_t each = (Runtime::is_native ? 20'000 : 100'000) / pairs;
    Channel channel;
    std::atomic<std::uint64_t> sending{pairs};
    std::atomic<std::uint64_t> received{0};
    const auto ns = run_crew<Runtime>(2 * pairs, [&](std::uint64_t i) {
        if (i < pairs) {
            for (std::uint64_t n = 0; n < each; ++n) channel.send(1);
            // sync(last_sender): everything that was sent comes before the end.
            if (sending.fetch_sub(1, std::memory_order_acq_rel) == 1) channel.close();
            return;
        }
        std::uint64_t sum = 0;
        for (int item = 0; channel.receive(item);) sum += static_cast<std::uint64_t>(item);
        // relaxed: read after all runners were joined.
        received.fetch_add(sum, std::memory_order_relaxed);
    });
    if (received != each * pairs) throw std::runtime_error{"items were lost"};
    return {each * pairs, ns};
}

template <class Runtime, class Unbuffered, class Buffered, class Unbounded>
int run_channel_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const auto way = in.word("way", {"unbuffered", "buffered", "unbounded"});
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 2, 2, way == "unbuffered" ? 2 : 1'000'000);
        const auto min_ms = in.number("min_ms", 100, 0);
        in.done();
        if (fibers % 2 != 0)
            throw std::invalid_argument{"fibers: expected as many senders as receivers"};

        tally sum;
        Runtime::run(processors, [&] {
            if (way == "unbuffered") {
                sum = repeat(min_ms, rally<Runtime, Unbuffered>);
            } else if (way == "buffered") {
                sum = repeat(min_ms, [=] { return stream<Runtime, Buffered>(fibers / 2); });
            } else if constexpr (!std::is_void_v<Unbounded>) {
                sum = repeat(min_ms, [=] { return stream<Runtime, Unbounded>(fibers / 2); });
            }
        });
        if (sum.ops == 0) throw std::invalid_argument{"this runtime has no " + way + " channel"};
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}

}  // namespace bench
