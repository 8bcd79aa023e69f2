// SPDX-License-Identifier: MIT
#include "sched/policies/built_in.hpp"

#include <array>

#include "base/assert.hpp"
#include "sched/policies/dealer.hpp"
#include "sched/policies/earliest_deadline.hpp"
#include "sched/policies/fair_share.hpp"
#include "sched/policies/global_fifo.hpp"
#include "sched/policies/locked_queue.hpp"
#include "sched/policies/mpsc_array.hpp"
#include "sched/policies/mpsc_list.hpp"
#include "sched/policies/urgent_first.hpp"

namespace ums::sched {

namespace {

template <class Policy>
std::unique_ptr<policy> make() {
    return std::make_unique<Policy>();
}

using kind = policy_kind;
constexpr std::array all{
    built_in_policy{kind::work_stealing, "work_stealing", "a queue per processor, idle ones steal",
                    [] { return std::unique_ptr<policy>{}; }},
    built_in_policy{kind::global_fifo, "global_fifo", "one queue for all",
                    &make<global_fifo_policy>},
    built_in_policy{kind::local_locked, "local_locked", "a locked queue per processor",
                    &make<dealer<locked_queue>>},
    built_in_policy{kind::local_mpsc, "local_mpsc", "a lock-free array per processor",
                    &make<dealer<mpsc_array>>},
    built_in_policy{kind::local_mpsc_intrusive, "local_mpsc_intrusive",
                    "a lock-free list per processor", &make<dealer<mpsc_list>>},
    built_in_policy{kind::priority, "priority", "the most urgent first",
                    &make<urgent_first_policy>},
    built_in_policy{kind::earliest_deadline_first, "earliest_deadline_first",
                    "the earliest deadline first", &make<earliest_deadline_policy>},
    built_in_policy{kind::fair_share, "fair_share", "running time by weight",
                    &make<fair_share_policy>},
};

const built_in_policy& at(kind k) noexcept {
    UMS_ASSERT(is_built_in(k), "a policy_kind that there is not");
    return all[static_cast<std::size_t>(k)];
}

}  // namespace

std::span<const built_in_policy> built_in_policies() noexcept { return all; }

bool is_built_in(kind k) noexcept { return static_cast<std::size_t>(k) < all.size(); }

}  // namespace ums::sched

namespace ums {

std::string_view name_of(policy_kind kind) noexcept { return sched::at(kind).name; }

std::optional<policy_kind> policy_named(std::string_view name) noexcept {
    for (const auto& one : sched::all)
        if (one.name == name) return one.kind;
    return {};
}

std::unique_ptr<policy> make_policy(policy_kind kind) { return sched::at(kind).make(); }

}  // namespace ums
