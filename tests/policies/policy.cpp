// SPDX-License-Identifier: MIT

// A policy for `ums check-policy`: correct if BREAKS is `nothing` or `remembers`; otherwise it
// breaks one rule. It has a queue for each processor, behind one mutex.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <unistd.h>
#include <unordered_map>
#include <utility>

#include <ums/policy.hpp>

namespace {

enum class rule {
    nothing,
    remembers,
    drops,
    duplicates,
    starves,
    starves_outside,
    sleeps_beside,
    never_sleeps,
    races,
    forgets_on_detach,
    raises_twice,
    exits
};
constexpr rule breaks = rule::BREAKS;

struct guard {
    explicit guard(std::mutex& m) : mutex{m} {
        if (breaks != rule::races) mutex.lock();
    }
    ~guard() {
        if (breaks != rule::races) mutex.unlock();
    }
    std::mutex& mutex;
};

// What a policy notes about a fiber stays with it, so no fiber may come from one policy to another
// unless it leaves for another cluster.
void note(ums::fiber_ref f, unsigned had_by) {
    static std::unordered_map<std::uint64_t, unsigned> all;
    if (all.try_emplace(f.id().value(), had_by).first->second != had_by) std::abort();
}

class one final : public ums::policy {
public:
    explicit one(unsigned number) : number_{number} {}
    // A cluster ends after its fibers.
    ~one() override {
        for (const auto& queue : queues_)
            if (breaks == rule::remembers && !queue.empty()) std::abort();
    }
    void attach(unsigned processor) override {
        const guard held{mutex_};
        active_ = processor + 1;
    }
    void detach(unsigned processor) override {
        const guard held{mutex_};
        active_ = processor;
        if (breaks == rule::forgets_on_detach) {
            while (queues_[processor].pop_front()) {
            }
            return;
        }
        while (const ums::fiber_ref f = queues_[processor].pop_front()) queues_[0].push_back(f);
    }
    void ready(ums::fiber_ref f, unsigned processor) noexcept override {
        const guard held{mutex_};
        ++calls_;
        if (breaks == rule::remembers) note(f, number_);
        if (breaks == rule::drops && calls_ % 1000 == 0) return;
        if (breaks == rule::exits && calls_ == 1000) ::_exit(0);
        // Only a processor with nothing else looks there.
        if (breaks == rule::starves_outside && processor == outside)
            return queues_.back().push_back(f);
        auto& queue = queues_[processor == outside ? calls_ % active_ : processor];
        // Only the last fiber runs, and comes back at once.
        breaks == rule::starves ? queue.push_front(f) : queue.push_back(f);
    }
    ums::fiber_ref next(unsigned processor) noexcept override {
        const guard held{mutex_};
        // Returns it twice in a row, before another thread can queue it again.
        if (breaks == rule::duplicates && last_) return std::exchange(last_, {});
        const ums::fiber_ref f = queues_[processor].pop_front();
        if (breaks == rule::starves_outside && !f) return queues_.back().pop_front();
        if (breaks == rule::duplicates && f && ++calls_ % 1000 == 0) last_ = f;
        return f;
    }
    ums::fiber_ref steal(unsigned, unsigned victim) noexcept override {
        const guard held{mutex_};
        return queues_[victim].pop_front();
    }
    bool empty(unsigned processor) const noexcept override {
        const guard held{mutex_};
        if (breaks == rule::never_sleeps) return false;
        // It could steal from another queue.
        if (breaks == rule::sleeps_beside) return queues_[processor].empty();
        for (const auto& queue : queues_)
            if (!queue.empty()) return false;
        return breaks != rule::duplicates || !last_;
    }
    bool has_priorities() const noexcept override { return breaks == rule::raises_twice; }
    // It runs, waits, or is in the queue already.
    void raised(ums::fiber_ref f) noexcept override {
        const guard held{mutex_};
        queues_[0].push_front(f);
    }

private:
    mutable std::mutex mutex_;
    std::array<ums::fiber_queue, 64> queues_;
    const unsigned number_;
    unsigned active_ = 1;
    std::uint64_t calls_ = 0;
    ums::fiber_ref last_;
};

}  // namespace

extern "C" ums::policy* ums_policy_make() {
    static unsigned made = 0;
    return new one{made++};
}
