// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/run/cluster.hpp: processors, a pool of carriers, and one queue for
// all.

#include <string>

#include "sched/block/carrier_pool.hpp"
#include "sched/fiber/fiber.hpp"

namespace ums::sched {

class cluster {
public:
    cluster(unsigned processors, unsigned most_carriers, os::nanoseconds slice) noexcept
        : carriers{*this, most_carriers, slice}, processors_{processors} {}

    [[nodiscard]] unsigned active() const noexcept { return processors_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] bool pins() const noexcept { return false; }
    [[nodiscard]] bool is_paused() const noexcept { return false; }
    [[nodiscard]] std::uint64_t activity() const noexcept {
        std::uint64_t all = 0;
        for (const processor* p : at)
            if (p != nullptr) all += p->activity();
        return all;
    }

    void make_ready_from_outside(fiber& f) noexcept {
        tso::model& m = tso::model::running();
        if (++m.at(f.queued) != 1) m.fail("a fiber is in the queue twice");
        queue.fetch_or(1u << f.number, base::acq_rel);
        wake_for_work();
    }
    void wake_for_work() noexcept {
        signal.fetch_add(1, base::acq_rel);
        os::futex_wake(signal.address());
    }
    [[nodiscard]] bool has_ready() const noexcept { return queue.load(base::acquire) != 0; }
    // Returns the number of a fiber, or -1.
    [[nodiscard]] int pop() noexcept {
        for (std::uint32_t seen = queue.load(base::acquire); seen != 0;) {
            const int first = __builtin_ctz(seen);
            if (queue.compare_exchange(seen, seen & (seen - 1), base::acq_rel, base::acquire))
                return first;
        }
        return -1;
    }

    carrier_pool carriers;
    base::atomic<std::uint32_t> queue;   // A bit for each fiber.
    base::atomic<std::uint32_t> signal;  // Changes when there may be work.
    processor* at[2] = {};

private:
    unsigned processors_;
    std::string name_ = "model";
};

inline bool processor::is_wanted() const noexcept { return home_.has_ready(); }
inline void processor::make_ready(fiber& f, place) noexcept { home_.make_ready_from_outside(f); }

}  // namespace ums::sched
