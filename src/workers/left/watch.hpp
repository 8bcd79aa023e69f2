// SPDX-License-Identifier: MIT
#pragma once

// workers/left/watch.hpp: connects the schedulers' kernel threads with a detector of blocking
// (src/carry) and the signal that stops strays. It exists while a scheduler is entered.

#include <string>

#include "carry/load.hpp"
#include "workers/scheduler/seat.hpp"

namespace ums::scheduling {

struct scheduler_thread;

class seat_watch final : public carry::load {
public:
    explicit seat_watch(seat& of) noexcept : seat_{of} {}

    [[nodiscard]] int tid() const noexcept override { return seat_.tid.get(); }

    [[nodiscard]] bool is_of_interest() const noexcept override {
        // sync(ums.seat): as in hand_off(), which decides.
        return seat_.rider.load(base::acquire) != nullptr && !seat_.ownership.is_inside();
    }
    [[nodiscard]] int cpu() const noexcept override { return seat_.cpu.get(); }
    [[nodiscard]] std::uint64_t activity() const noexcept override { return seat_.turns.get(); }
    bool on_block(const carry::notice& what) noexcept override;
    // The scheduler waits to be told of each block.
    [[nodiscard]] bool is_urgent() const noexcept override { return true; }

private:
    seat& seat_;
};

// Called by a thread when it becomes a scheduler, and when it stops being one, on its own kernel
// thread. -EOPNOTSUPP: the detector that UMS_BLOCK asks for does not work here.
[[nodiscard]] int begin_watch(scheduler_thread& s);
void end_watch(scheduler_thread& s) noexcept;

[[nodiscard]] int current_tid() noexcept;

// Says in a line which detector would look for blocking if a scheduler entered now, and why.
[[nodiscard]] std::string describe_watch();

}  // namespace ums::scheduling
