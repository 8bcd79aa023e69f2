// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/mpsc_end.hpp: one consumer at a time.
//
// The queues of local_mpsc and local_mpsc_intrusive have many producers and one consumer. That is
// their processor, and now and then one that steals: a processor that comes while another one
// consumes looks elsewhere, and comes again.

#include "base/atomic.hpp"

namespace ums::sched {

class mpsc_end {
public:
    // If it converts to `true`, the caller is the consumer as long as it exists.
    class turn {
    public:
        explicit turn(mpsc_end& end) noexcept
            // sync(mpsc_end): sees what the last consumer did.
            : end_{end}, is_mine_{!end.is_taken_.exchange(true, base::acquire)} {}
        ~turn() {
            if (is_mine_) end_.is_taken_.store(false, base::release);  // sync(mpsc_end)
        }
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;
        explicit operator bool() const noexcept { return is_mine_; }

    private:
        mpsc_end& end_;
        const bool is_mine_;
    };

private:
    base::atomic<bool> is_taken_;
};

}  // namespace ums::sched
