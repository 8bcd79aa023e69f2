// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/run/processor.hpp: as much of a processor as a hand-off and a stop
// need.

#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "sched/fiber/parkable.hpp"
#include "sched/record/trace.hpp"

namespace ums::sched {

struct carrier;
struct fiber;
class cluster;

class processor {
public:
    explicit processor(cluster& home) noexcept : home_{home} {}

    [[nodiscard]] arch::race_context& race() noexcept { return race_; }
    [[nodiscard]] std::uint64_t activity() const noexcept { return switches.get(); }
    [[nodiscard]] bool is_wanted() const noexcept;
    [[nodiscard]] bool looks_wanted() const noexcept { return is_wanted(); }
    [[nodiscard]] cluster& home() const noexcept { return home_; }
    [[nodiscard]] unsigned index() const noexcept { return 0; }
    [[nodiscard]] carrier* holder() const noexcept { return holder_.load(base::relaxed); }
    [[nodiscard]] bool is_held_by(const carrier& c) const noexcept { return holder() == &c; }
    void set_holder(carrier* c) noexcept { holder_.store(c, base::release); }
    enum class place : bool { back, next };
    [[nodiscard]] bool may_run(const fiber&) const noexcept { return true; }
    void make_ready(fiber& f, place) noexcept;
    void wake_help() noexcept {}

    trace_ring* trace = nullptr;
    base::owned<std::uint64_t> switches{1};
    base::atomic<carrier*> holder_;
    // For the proof: what only the holder may touch.
    tso::model::cell content = tso::model::running().make(0);
    tso::model::cell inside = tso::model::running().make(0);

private:
    cluster& home_;
    arch::race_context race_;
};

}  // namespace ums::sched
