// SPDX-License-Identifier: MIT
#pragma once

// bench/jobs/jobs.hpp: the workload of all jobs peers: runners that each do a job at certain times,
// until the time is up. A job takes from its release until its work is done, also if its runner was
// busy with the one before at its release. It computes in pieces of 50 us and yields in between.
//
//   requests   nine tenths of the runners have short requests, 20 us, at random times, a fifth of
//              what the processors can do; the others long ones, 2 ms, half of it. A short one has
//              the higher priority, is late after 1 ms, and is of a group of its own; a long one
//              is late after 100 ms
//   deadlines  each has a job in each of its periods, of 5 to 50 ms, which is late if it does not
//              end in that period; all together take nine tenths of what the processors can do. The
//              shorter the period, the higher the priority. Short are those of the first half
//
// `short_p50_us`, `short_p99_us` and `long_p99_us` are times of jobs, `late` is the share of the
// jobs that were late.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "../common/lateness.hpp"
#include "../common/peer.hpp"
#include "../common/urgency.hpp"
#include "../common/work.hpp"

namespace bench {

constexpr std::uint64_t piece_ns = 50'000;

// The same numbers in every runtime.
class dice {
public:
    explicit dice(std::uint64_t seed) : next_{seed << 32U} {}
    // From 0 to 1, without either.
    double roll() { return (static_cast<double>(scramble(next_++) >> 32U) + 0.5) / 4294967296.0; }

private:
    std::uint64_t next_;
};

struct job_source {
    double gap_ns = 0;  // From release to release: the mean, if is_random.
    bool is_random = false;
    bool is_short = false;
    double work_ns = 0;
    double late_after_ns = 0;
    urgency how = {};
    std::vector<std::uint64_t> took_ns = {};
};

inline std::vector<job_source> requests(std::uint64_t processors, std::uint64_t fibers) {
    const auto n_long = std::max<std::uint64_t>(fibers / 10, 1);
    const auto n_short = fibers - n_long;
    const auto gap = [&](std::uint64_t n, double work_ns, double load) {
        return static_cast<double>(n) * work_ns / (load * static_cast<double>(processors));
    };
    std::vector<job_source> all(n_short, {.gap_ns = gap(n_short, 20e3, 0.2),
                                          .is_random = true,
                                          .is_short = true,
                                          .work_ns = 20e3,
                                          .late_after_ns = 1e6,
                                          .how = {.priority = 1, .group = 1}});
    all.resize(fibers, {.gap_ns = gap(n_long, 2e6, 0.5),
                        .is_random = true,
                        .work_ns = 2e6,
                        .late_after_ns = 100e6});
    return all;
}

inline std::vector<job_source> periodic(std::uint64_t processors, std::uint64_t fibers) {
    dice random{7};
    std::vector<double> parts;
    for (std::uint64_t i = 0; i < fibers; ++i) parts.push_back(0.5 + random.roll());
    double sum = 0;
    for (const double part : parts) sum += part;
    std::vector<job_source> all;
    for (std::uint64_t i = 0; i < fibers; ++i) {
        // Spread evenly on a logarithmic scale.
        const double place = (static_cast<double>(i) + random.roll()) / static_cast<double>(fibers);
        const double period = 5e6 * std::pow(10, place);
        all.push_back({.gap_ns = period,
                       .is_short = i < fibers / 2,
                       .work_ns = 0.9 * static_cast<double>(processors) * parts[i] / sum * period,
                       .late_after_ns = period,
                       .how = {.priority = 3 - static_cast<int>(i * 8 / fibers)}});
    }
    return all;
}

template <class Runtime>
void serve(job_source& mine, std::uint64_t begin_ns, double length_ns, std::uint64_t seed) {
    dice random{seed};
    const auto gap = [&] {
        return mine.is_random ? -std::log(random.roll()) * mine.gap_ns : mine.gap_ns;
    };
    const auto pieces = static_cast<std::uint64_t>(std::ceil(mine.work_ns / piece_ns));
    const auto steps = steps_of(static_cast<std::uint64_t>(mine.work_ns)) / pieces;
    std::uint64_t x = seed;
    for (double at = random.roll() * mine.gap_ns; at < length_ns; at += gap()) {
        const auto release = begin_ns + static_cast<std::uint64_t>(at);
        Runtime::set_due_ns(release + static_cast<std::uint64_t>(mine.late_after_ns));
        Runtime::sleep_until_ns(release);
        for (std::uint64_t i = 0; i < pieces; ++i) {
            if (i != 0) Runtime::yield();
            x = compute(steps, x);
        }
        mine.took_ns.push_back(now_ns() - release);
    }
}

inline void add_jobs(line& out, const std::vector<job_source>& all) {
    std::vector<std::uint64_t> took[2];  // Long, short.
    std::uint64_t late = 0;
    for (const auto& one : all) {
        auto& to = took[one.is_short ? 1 : 0];
        to.insert(to.end(), one.took_ns.begin(), one.took_ns.end());
        for (const auto ns : one.took_ns)
            if (static_cast<double>(ns) > one.late_after_ns) ++late;
    }
    for (auto& one : took) {
        if (one.empty()) throw std::runtime_error{"min_ms is too short for a job of each kind"};
        std::sort(one.begin(), one.end());
    }
    out.add("short_p50_us", quantile_us(took[1], 0.5));
    out.add("short_p99_us", quantile_us(took[1], 0.99));
    out.add("long_p99_us", quantile_us(took[0], 0.99));
    out.add("late",
            static_cast<double>(late) / static_cast<double>(took[0].size() + took[1].size()));
}

template <class Runtime>
int run_jobs_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 20, 2);
        const auto min_ms = in.number("min_ms", 1000);
        const bool is_periodic = in.word("way", {"requests", "deadlines"}) == "deadlines";
        const auto policy = Runtime::choose_policy(in);
        in.done();

        auto all = is_periodic ? periodic(processors, fibers) : requests(processors, fibers);
        steps_of(1);  // Measures, with nothing beside it.
        Runtime::run(
            processors,
            [&] {
                const auto begin = now_ns() + 1'000'000;
                std::vector<typename Runtime::runner> runners;
                for (std::uint64_t i = 0; i < fibers; ++i)
                    runners.push_back(Runtime::make(all[i].how, [&, i] {
                        serve<Runtime>(all[i], begin, static_cast<double>(min_ms) * 1e6, i + 1);
                    }));
                for (auto& one : runners) one.join();
            },
            policy);
        add_jobs(out, all);
    });
}

}  // namespace bench
