// SPDX-License-Identifier: MIT

// channel [THREADS [ITEMS]]: half as many senders as threads, and as many receivers, share one
// channel. It has the places that the suite's other programs with a bounded channel have.

#include "run.hpp"

#include <vector>

constexpr std::size_t places = 65536;

struct tally {
    std::uint64_t count = 0, sum = 0;
};

static tally pass(std::uint64_t items, std::size_t pairs) {
    ums::channel<std::uint64_t> channel{places};
    std::vector<ums::fiber> senders, receivers;
    std::vector<tally> got(pairs);
    for (std::size_t i = 0; i < pairs; ++i) {
        const auto begin = items * i / pairs, end = items * (i + 1) / pairs;
        senders.emplace_back([&channel, begin, end] {
            for (auto item = begin; item < end; ++item) (void)channel.send(item);
        });
        receivers.emplace_back([&channel, &out = got[i]] {
            tally mine;
            while (const auto item = channel.receive()) {
                ++mine.count;
                mine.sum += *item;
            }
            out = mine;
        });
    }
    for (auto& one : senders) one.join();
    channel.close();
    tally all;
    for (std::size_t i = 0; i < pairs; ++i) {
        receivers[i].join();
        all.count += got[i].count;
        all.sum += got[i].sum;
    }
    return all;
}

int main(int argc, char** argv) {
    const auto threads = bench::threads(argc, argv, 1);
    const auto items = bench::number(argc, argv, 2, 10'000'000);
    const std::size_t pairs = std::max(threads / 2, 1U);
    std::printf("producers: %zu\nconsumers: %zu\n", pairs, pairs);
    return bench::on_processors(threads, [items, pairs] {
        (void)pass(items, pairs);  // Warms up.
        const bench::stopwatch watch;
        const auto all = pass(items, pairs);
        const auto us = watch.us();
        std::printf("output: %llu\n", static_cast<unsigned long long>(all.sum));
        bench::report("elements", items, us, true);
        return bench::check("items", all.count, items) |
               bench::check("sum", all.sum, items * (items - 1) / 2);
    });
}
