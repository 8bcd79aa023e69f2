// SPDX-License-Identifier: MIT

// shares: fibers of different weights compute and yield until the time is up. How far is what each
// got from what its weight says?
//
//   fibers  six of one group, with weights of 50 to 1,000
//   groups  twenty of one group, of which one has the weight 500 and the others have 100, and one
//           fiber of another group that has three times the weight
//
// Every other fiber computes for 20 us between two yields, the others for 200 us. A share is time
// by the clock, as the policy counts it: also time in which the machine did something else.
// `share_error` is the largest distance of a share (of a fiber, or of a group) from its weight's,
// as a part of that: 0.03 is 3 %.

#include "../common/on_ums.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../common/peer.hpp"
#include "../common/work.hpp"

namespace {

struct sharer {
    bench::urgency how;
    double part;  // Of all time, as its weight and its group's say.
    std::uint64_t ran_ns = 0;
};

std::vector<sharer> six_fibers() {
    std::vector<sharer> all;
    for (const unsigned weight : {100U, 200U, 300U, 50U, 1000U, 350U})
        all.push_back({{.weight = weight}, weight / 2000.0});
    return all;
}

std::vector<sharer> two_groups() {
    std::vector<sharer> all{{{.weight = 500, .group = 1}, 0.25 * 500 / 2400}};
    all.resize(20, {{.group = 1}, 0.25 * 100 / 2400});
    all.push_back({{.group = 2}, 0.75});
    return all;
}

void work(std::vector<sharer>& all, std::uint64_t ns) {
    std::vector<ums::fiber> runners;
    const auto end = bench::now_ns() + ns;
    for (std::size_t i = 0; i < all.size(); ++i)
        runners.push_back(bench::on_ums::make(all[i].how, [&, i] {
            const std::uint64_t steps = bench::steps_of(i % 2 == 0 ? 20'000 : 200'000);
            for (std::uint64_t since = 0; (since = bench::now_ns()) < end;) {
                bench::compute(steps, since);
                all[i].ran_ns += bench::now_ns() - since;
                bench::on_ums::yield();
            }
        }));
    for (auto& one : runners) one.join();
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1);
        const auto min_ms = in.number("min_ms", 2000);
        auto all = in.word("way", {"fibers", "groups"}) == "fibers" ? six_fibers() : two_groups();
        in.number("fibers", all.size(), all.size(), all.size());
        const auto policy = bench::on_ums::choose_policy(in);
        in.done();

        bench::steps_of(1);  // Measures, with nothing beside it.
        bench::on_ums::run(
            1,
            [&] {
                if (policy.policy == ums::policy_kind::fair_share)
                    ums::cluster::standard().set_group_weight(2, 3 * ums::usual_weight);
                work(all, min_ms * 1'000'000);
            },
            policy);
        double sum = 0, worst = 0;
        for (const auto& one : all) sum += static_cast<double>(one.ran_ns);
        double first_group = 0;
        for (const auto& one : all) {
            const double got = static_cast<double>(one.ran_ns) / sum;
            worst = std::max(worst, std::abs(got / one.part - 1));
            if (one.how.group == 1) first_group += got;
        }
        if (first_group != 0) worst = std::max(worst, std::abs(first_group / 0.25 - 1));
        out.add("share_error", worst);
    });
}
