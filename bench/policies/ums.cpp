// SPDX-License-Identifier: MIT

// policies: `fibers` fibers under a policy, in one of several ways. Meanwhile a plain thread wakes
// an urgent fiber every now and then: how long after that does it run?
//
//   cycle     a ring: each wakes the next and waits
//   yield     each yields
//   churn     each spawns a fiber and joins it
//   locality  each reads its own 16 KiB, and yields
//   transfer  pairs pass a value to and fro
//   locks     each works 500 ns outside of a mutex and 100 ns inside, one mutex for eight
//             (threadtest)

#include <ums/ums.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../common/peer.hpp"

namespace {

using bench::now_ns;

void check(bool is_right) {
    if (!is_right) throw std::runtime_error{"a channel was closed too early"};
}

void work_ns(std::uint64_t ns) {
    for (const auto end = now_ns() + ns; now_ns() < end;) {
    }
}

// A plain thread wakes it; it has everything that makes it urgent under one policy or another.
class probe {
public:
    probe() {
        fiber_ = ums::fiber{{.priority = ums::most_priority, .weight = ums::most_weight, .group = 1}, [this] { run(); }};
        thread_ = std::thread{[this] {
            while (!stop_) {
                std::this_thread::sleep_for(std::chrono::microseconds{200});
                if (woken_at_.load(std::memory_order_acquire) != 0) continue;  // Still on its way.
                // The place of a ready fiber does not change, so it is due at once from the start.
                woken_at_.store(now_ns(), std::memory_order_release);
                fiber_.ref().unpark();
            }
        }};
    }
    ~probe() {
        end();
    }
    void end() {
        if (!thread_.joinable()) return;
        stop_ = true;
        ums::blocking([this] { thread_.join(); });
        fiber_.ref().unpark();
        fiber_.join();
    }
    // Requires: end().
    double quantile_us(double part) {
        if (waits_.empty()) return 0;
        std::sort(waits_.begin(), waits_.end());
        const auto at = static_cast<std::size_t>(part * static_cast<double>(waits_.size() - 1));
        return static_cast<double>(waits_[at]) / 1000;
    }

private:
    void run() {
        ums::this_fiber::ref().set_deadline(ums::deadline{std::chrono::nanoseconds{1}});
        while (!stop_) {
            ums::this_fiber::park();
            const auto at = woken_at_.load(std::memory_order_acquire);
            if (at == 0) continue;
            waits_.push_back(now_ns() - at);
            woken_at_.store(0, std::memory_order_release);
        }
    }

    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> woken_at_{0};
    std::vector<std::uint64_t> waits_;
    ums::fiber fiber_;
    std::thread thread_;
};

// Each fiber does its step until the time is over; returns how many all of them did.
template <class Step>
bench::tally loop(std::uint64_t fibers, std::uint64_t ns, Step step) {
    std::vector<ums::fiber> all;
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> ops{0};
    const auto begin = now_ns();
    for (std::uint64_t i = 0; i < fibers; ++i)
        all.emplace_back([&, i] {
            std::uint64_t own = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                step(i);
                if (++own % 64 == 0 && now_ns() - begin > ns) stop = true;
            }
            ops += own;
        });
    for (auto& one : all) one.join();
    return {ops, now_ns() - begin};
}

bench::tally cycle(std::uint64_t fibers, std::uint64_t ns) {
    std::vector<ums::fiber> all(fibers);
    std::atomic<bool> stop{false};
    std::uint64_t ops = 0;
    ums::latch go{1};
    const auto begin = now_ns();
    for (std::uint64_t i = 0; i < fibers; ++i)
        all[i] = ums::fiber{[&, i] {
            go.wait();
            for (;;) {
                if (i != 0) ums::this_fiber::park();
                const bool last = stop;
                if (i == 0 && now_ns() - begin > ns) stop = true;
                ++ops;  // One of them runs at a time.
                all[(i + 1) % fibers].ref().unpark();
                if (last || (i == 0 && stop)) return;
                if (i == 0) ums::this_fiber::park();
            }
        }};
    go.count_down();
    // The last one wakes the first, which may have ended by then, so they are joined from the end.
    for (std::uint64_t i = fibers; i-- > 0;) all[i].join();
    return {ops, now_ns() - begin};
}

bench::tally transfer(std::uint64_t fibers, std::uint64_t ns) {
    std::vector<std::unique_ptr<ums::channel<int>>> there, back;
    for (std::uint64_t i = 0; i < fibers / 2 + 1; ++i) {
        there.push_back(std::make_unique<ums::channel<int>>());
        back.push_back(std::make_unique<ums::channel<int>>());
    }
    std::vector<ums::fiber> echoes;
    for (std::uint64_t i = 0; i < fibers / 2 + 1; ++i)
        echoes.emplace_back([&, i] {
            while (const auto got = there[i]->receive()) check(back[i]->send(*got) == ums::channel_status::ok);
        });
    const auto sum = loop(fibers / 2 + 1, ns, [&](std::uint64_t i) {
        check(there[i]->send(1) == ums::channel_status::ok);
        check(back[i]->receive().has_value());
    });
    for (auto& one : there) one->close();
    for (auto& one : echoes) one.join();
    return sum;
}

bench::tally run(const std::string& way, std::uint64_t fibers, std::uint64_t ns) {
    if (way == "cycle") return cycle(std::max<std::uint64_t>(fibers, 2), ns);
    if (way == "yield") return loop(fibers, ns, [](std::uint64_t) { ums::this_fiber::yield(); });
    if (way == "churn") return loop(fibers, ns, [](std::uint64_t) { ums::fiber{[] {}}.join(); });
    if (way == "transfer") return transfer(fibers, ns);
    if (way == "locality") {
        std::vector<std::array<std::uint64_t, 2048>> data(fibers);
        return loop(fibers, ns, [&](std::uint64_t i) {
            for (auto& word : data[i]) ++word;
            ums::this_fiber::yield();
        });
    }
    std::vector<ums::mutex> locks(fibers / 8 + 1);
    return loop(fibers, ns, [&](std::uint64_t i) {
        work_ns(500);
        {
            const std::lock_guard held{locks[i % locks.size()]};
            work_ns(100);
        }
        if (i % 2 == 0) ums::this_fiber::yield();
    });
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 100);
        const auto min_ms = in.number("min_ms", 500, 1);
        const auto way = in.word("way", {"yield", "cycle", "churn", "locality", "transfer", "locks"});
        const auto policy = ums::policy_named(
            in.word("policy", {"work_stealing", "global_fifo", "local_locked", "local_mpsc",
                               "local_mpsc_intrusive", "priority", "earliest_deadline_first",
                               "fair_share"}));
        in.done();

        bench::tally sum;
        double p50 = 0, p99 = 0;
        ums::run(ums::options{.processors = static_cast<unsigned>(processors), .policy = *policy}, [&] {
            probe urgent;
            sum = run(way, fibers, min_ms * 1'000'000);
            urgent.end();
            p50 = urgent.quantile_us(0.5);
            p99 = urgent.quantile_us(0.99);
            return 0;
        });
        out.add("ops", sum.ops).add("ns", sum.ns).add("wake_p50_us", p50).add("wake_p99_us", p99);
    });
}
