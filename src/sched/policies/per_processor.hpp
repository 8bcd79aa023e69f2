// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/per_processor.hpp: what a policy keeps for each processor of its cluster.
//
// A cluster adds its processors at the end and removes them from there, one at a time. A place that
// was made stays until the policy is destroyed, because other threads may still look into it.

#include <memory>

#include "base/atomic.hpp"

namespace ums::sched {

template <class Place>
class per_processor {
public:
    per_processor() = default;
    ~per_processor() {
        for (unsigned i = 0; i < made(); ++i) delete &at(i);
    }
    per_processor(const per_processor&) = delete;
    per_processor& operator=(const per_processor&) = delete;

    // The cluster calls both, one call at a time.
    void attach(unsigned processor) {
        if (processor == made()) {
            // sync(per_processor): publishes the place to threads that read the count.
            places_[processor].store(std::make_unique<Place>().release(), base::release);
            made_.store(processor + 1, base::release);
        }
        active_.store(processor + 1, base::release);
    }
    void detach(unsigned processor) noexcept { active_.store(processor, base::release); }

    // Includes those of processors that were removed.
    [[nodiscard]] unsigned made() const noexcept {
        return made_.load(base::acquire);  // sync(per_processor)
    }
    // A hint, because it may change at any time.
    [[nodiscard]] unsigned active() const noexcept { return active_.load(base::relaxed); }
    [[nodiscard]] Place& at(unsigned processor) const noexcept {
        return *places_[processor].load(base::acquire);  // sync(per_processor)
    }

private:
    static constexpr unsigned most = 1024;

    base::atomic<Place*> places_[most];
    base::atomic<unsigned> made_;
    base::atomic<unsigned> active_;
};

}  // namespace ums::sched
