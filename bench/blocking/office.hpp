// SPDX-License-Identifier: MIT
#pragma once

// bench/blocking/office.hpp: some runners compute while others block: the workload of all blocking
// peers that are written in C++.
//
// Four runners compute: 10 us, then a yield. As many as asked for block in the kernel, over and
// over, each for the same time, and yield before each block. Phases in which the four are alone
// take turns with those in which the others block, within one process, so that whatever disturbs
// the machine meets both.
//
// throughput_kept  what the four did per second beside the others, as a share of what they did
//                  alone.
// p50_us, p99_us   from the moment a runner is about to block until another comes back from its
//                  yield.
// blocks_per_s     what the others did.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../common/cell.hpp"
#include "../common/clock.hpp"
#include "../common/line.hpp"
#include "../common/work.hpp"
#include "ways.hpp"

namespace bench {

struct office_plan {
    std::uint64_t processors, blockers, block_ns, phase_ns, rounds;
    std::string way;
};

inline office_plan office_plan_of(cell& in) {
    office_plan p{};
    p.processors = in.number("processors", 1, 1, 1024);
    p.blockers = in.number("fibers", 100, 1, 10'000);
    p.way = in.word("way", {"nanosleep", "read", "fault", "getaddrinfo", "fsync"});
    p.block_ns = in.number("block_ms", 200, 1, 60'000) * 1'000'000U;
    p.phase_ns = in.number("phase_ms", 1000, 1, 600'000) * 1'000'000U;
    p.rounds = in.number("rounds", 2, 1, 1000);
    return p;
}

template <class Runtime>
class office {
public:
    explicit office(const office_plan& plan)
        : plan_{plan}, ways_{make_blocks(plan.way, plan.blockers)} {
        delays_ns_.resize(most_delays);
    }

    // Returns the figures. `call` calls its argument, in the runtime's way to mark a call that
    // blocks.
    template <class Call>
    void run(line& out, Call call) {
        Runtime::run(plan_.processors, [&] {
            for (std::uint64_t round = 0; round < plan_.rounds; ++round) {
                phase(alone_, 0, call);
                phase(beside_, plan_.blockers, call);
            }
        });
        const auto rate = [](const tally& of) {
            return static_cast<double>(of.ops) / static_cast<double>(of.ns);
        };
        const auto n = std::min<std::uint64_t>(delay_count_, most_delays);
        delays_ns_.resize(n);
        std::sort(delays_ns_.begin(), delays_ns_.end());
        const auto at = [&](std::uint64_t percent) {
            return static_cast<double>(delays_ns_[(n - 1) * percent / 100]) / 1000.0;
        };
        out.add("throughput_kept", rate(beside_) / rate(alone_));
        out.add("p50_us", at(50)).add("p99_us", at(99));
        out.add("blocks_per_s",
                static_cast<double>(blocks_) * 1e9 / static_cast<double>(beside_.ns));
    }

private:
    static constexpr std::uint64_t computers = 4;
    static constexpr std::uint64_t step_ns = 10'000;
    static constexpr std::uint64_t most_delays = 1'000'000;

    template <class Call>
    void phase(tally& sum, std::uint64_t blockers, Call call) {
        // Making the runners is not counted, nor are the first blocks, which are spread over the
        // length of one block.
        begin_ns_ = now_ns() + plan_.block_ns / 4 + (blockers != 0 ? plan_.block_ns : 0);
        end_ns_ = begin_ns_ + (blockers != 0 ? plan_.phase_ns : plan_.phase_ns / 2);
        steps_done_ = 0;
        last_ns_ = begin_ns_;
        waiting_since_ns_ = 0;
        blocks_before_ = blocks_;
        shall_see_ = blockers != 0 ? delay_count_ + 1 : 0;
        std::vector<typename Runtime::runner> all;
        for (std::uint64_t i = 0; i < computers; ++i) all.emplace_back([this] { compute_on(); });
        for (std::uint64_t i = 0; i < blockers; ++i)
            all.emplace_back([this, i, call] { block_on(i, call); });
        for (auto& one : all) one.join();
        sum.ops += steps_done_;
        sum.ns += last_ns_ - begin_ns_;
    }

    // A phase is not over before a block has been seen.
    [[nodiscard]] bool is_over(std::uint64_t now) const {
        return now >= end_ns_ && delay_count_ >= shall_see_;
    }

    void compute_on() {
        std::uint64_t x = 0;
        for (;;) {
            note_delay(now_ns());
            x = compute(steps_, x);
            const auto now = now_ns();
            if (now >= begin_ns_) ++steps_done_;
            if (is_over(now)) {
                // Without preemption, a runner may be back much later than the phase was to end.
                auto last = last_ns_.load();
                while (last < now && !last_ns_.compare_exchange_weak(last, now)) {
                }
                return;
            }
            Runtime::yield();
        }
    }

    void note_delay(std::uint64_t now) {
        if (waiting_since_ns_.load(std::memory_order_relaxed) == 0) return;  // relaxed: a hint.
        const std::uint64_t since = waiting_since_ns_.exchange(0);
        if (since == 0 || now < begin_ns_) return;
        const std::uint64_t n = delay_count_++;
        if (n < most_delays) delays_ns_[n] = now > since ? now - since : 0;
    }

    template <class Call>
    void block_on(std::uint64_t i, Call call) {
        auto length = plan_.block_ns * (i + 1) / plan_.blockers;
        for (;;) {
            // A runner that comes back from a block may run on beside the four for a while, and no
            // other would have to make room when it blocks again. After this yield it has a
            // processor to lose.
            Runtime::yield();
            const auto now = now_ns();
            note_delay(now);
            // At least one block: with a runtime that does not move on, one block may take longer
            // than the phase.
            if (now >= end_ns_ && blocks_ != blocks_before_) return;
            std::uint64_t nobody = 0;
            waiting_since_ns_.compare_exchange_strong(nobody, now);
            if (now >= begin_ns_) ++blocks_;
            call([&] { ways_->block(i, length); });
            if (ways_->has_own_length()) {
                const auto took = now_ns() - now;
                if (took < length) Runtime::sleep_ns(length - took);
            }
            length = plan_.block_ns;
        }
    }

    const office_plan plan_;
    const std::unique_ptr<blocks> ways_;
    const std::uint64_t steps_ = steps_of(step_ns);
    tally alone_, beside_;
    // Written between phases:
    std::uint64_t begin_ns_ = 0, end_ns_ = 0, shall_see_ = 0, blocks_before_ = 0;

    std::atomic<std::uint64_t> steps_done_{0};
    std::atomic<std::uint64_t> last_ns_{0};  // When the last of the four stopped.
    std::atomic<std::uint64_t> blocks_{0};
    std::atomic<std::uint64_t> waiting_since_ns_{
        0};  // The first block after which no runner has computed yet.
    std::atomic<std::uint64_t> delay_count_{0};
    std::vector<std::uint64_t> delays_ns_;
};

}  // namespace bench
