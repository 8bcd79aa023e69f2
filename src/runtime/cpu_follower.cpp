// SPDX-License-Identifier: MIT
#include "runtime/cpu_follower.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "carry/service_thread.hpp"
#include "os/futex.hpp"
#include "runtime/settings.hpp"
#include "sched/block/detection.hpp"
#include "sched/run/cluster.hpp"

namespace ums::rt {

namespace {
// The detector's thread calls it at any time while it is set.
constinit base::atomic<cpu_follower*> the_follower;
}  // namespace

cpu_follower::cpu_follower(sched::cluster& home, unsigned most, std::string root)
    : home_{home}, most_{most}, root_{std::move(root)} {
    thread_ = carry::service_thread("ums-cpus", [this] { run(); });
    // sync(follower): publishes it to the detector's thread.
    the_follower.store(this, base::release);
    sched::detection::on_look.store(&on_look, base::release);
}

void cpu_follower::end() noexcept {
    if (!thread_.joinable()) return;
    sched::detection::on_look.store(nullptr, base::relaxed);
    the_follower.store(nullptr, base::relaxed);
    state_.store(ends, base::release);  // sync(follower)
    os::futex_wake(state_.address());
    thread_.join();
}

void cpu_follower::on_look(os::nanoseconds now) noexcept {
    cpu_follower* const f = the_follower.load(base::acquire);  // sync(follower)
    if (f == nullptr || now - f->last_ < period) return;
    f->last_ = now;
    std::uint32_t rested = rests;
    if (f->state_.compare_exchange(rested, looks, base::relaxed, base::relaxed))
        os::futex_wake(f->state_.address());
}

void cpu_follower::run() noexcept {
    for (;;) {
        const std::uint32_t seen = state_.load(base::acquire);  // sync(follower)
        if (seen == ends) return;
        if (seen == rests) {
            os::futex_wait(state_, rests);
            continue;
        }
        try {
            fit();
        } catch (const std::exception&) {
            // No memory or descriptor to look with, or no thread for another processor. All stays
            // as it is, and the next look tries again.
        }
        std::uint32_t looked = looks;
        state_.compare_exchange(looked, rests, base::relaxed, base::relaxed);
    }
}

void cpu_follower::fit() {
    const unsigned wanted = std::min(most_, available_processors(root_).number);
    while (home_.active() > wanted) home_.remove_processor();
    while (home_.active() < wanted && state_.load(base::relaxed) != ends) home_.add_processor();
}

}  // namespace ums::rt
