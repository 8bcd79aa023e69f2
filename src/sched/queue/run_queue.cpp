// SPDX-License-Identifier: MIT
#include "sched/queue/run_queue.hpp"

#include <algorithm>

namespace ums::sched {

namespace {
constexpr unsigned most_walks = 40;                         // So many take years.
constexpr std::uint32_t turn_every = 4, shorter_round = 4;  // Rounds; switches.
}  // namespace

void run_queue::push_back(fiber& f) noexcept {
    if (f.pinned_to.get() == nullptr) {
        ring_.push_back(f);
    } else {
        pinned_.push_back(f);
        end_soon();
    }
}

void run_queue::push_front(fiber& f) noexcept {
    if (f.pinned_to.get() == nullptr)
        ring_.push_front(f);
    else
        push_back(f);
}

void run_queue::call_some_new() noexcept {
    ring_.bring_to_front(std::min(news_.get(), ring_.behind()));
    news_.set(0);
}

void run_queue::give_turn_before_walk() noexcept {
    const std::uint64_t now = all_switches();
    const auto begin_walk = [this, now] {
        walks_ = std::min(walks_ + 1, most_walks);
        walk_began_ = now;
    };
    if (walks_ == 0) {
        begin_walk();
    } else if (now - walk_began_ >= std::uint64_t{round} * round << (walks_ - 1) &&
               ring_.let_oldest_new_go()) {
        begin_walk();
    }
    // Not at each round's end: the one that has the turn may wake others for all of its round, and
    // pinned fibers have each second one. So of four the ring's front comes at two: the turn, and
    // the walk.
    if (rounds_.get() >= next_turn_)
        next_turn_ = rounds_.get() + turn_every + ring_.give_turn() / shorter_round;
    if (ring_.behind() != 0) end_soon(shorter_round);
}

std::uint32_t run_queue::steal(run_queue& victim, std::uint32_t most, bool slot_too) noexcept {
    const std::uint32_t n = ring_.take_oldest(victim.ring_, victim.own_new(), most);
    if (n != 0 || !slot_too) return n;
    fiber* const next = victim.run_next_.get();
    if (next == nullptr || next->pinned_to.get() != nullptr) return 0;
    victim.run_next_.set(nullptr);
    ring_.push_back(*next);
    return 1;
}

}  // namespace ums::sched
