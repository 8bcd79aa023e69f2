// SPDX-License-Identifier: MIT

// priority_policy: a scheduling policy of one's own, as docs/write-a-policy.md explains it.
//
// Output:
//   urgent
//   usual
//   idle

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>

#include <ums/ums.hpp>

// The most urgent ready fiber first; among equals, first come, first served. A fiber's urgency is
// its tag, 0 (what a new fiber has) to 7.
class priority_policy final : public ums::policy {
public:
    // One queue for all processors: nothing belongs to one of them.
    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(ums::fiber_ref f, unsigned) noexcept override {
        const std::lock_guard guard{mutex_};
        queues_[std::min<std::size_t>(f.tag(), queues_.size() - 1)].push_back(f);
    }
    ums::fiber_ref next(unsigned) noexcept override {
        const std::lock_guard guard{mutex_};
        for (std::size_t urgency = queues_.size(); urgency-- > 0;)
            if (const ums::fiber_ref f = queues_[urgency].pop_front()) return f;
        return {};
    }
    [[nodiscard]] bool empty(unsigned) const noexcept override {
        const std::lock_guard guard{mutex_};
        return std::ranges::all_of(queues_, &ums::fiber_queue::empty);
    }

private:
    mutable std::mutex mutex_;  // Held for a few instructions, and never across a switch.
    std::array<ums::fiber_queue, 8> queues_;
};

// For `ums check-policy`, where this file is a shared object.
extern "C" ums::policy* ums_policy_make() { return new priority_policy; }

int main() {
    ums::options options{.processors = 1};
    options.make_policy = [] { return std::make_unique<priority_policy>(); };
    ums::run(options, [] {
        ums::fiber idle{{.tag = 0}, std::puts, "idle"}, usual{{.tag = 3}, std::puts, "usual"};
        ums::fiber urgent{{.tag = 7}, std::puts, "urgent"};
        for (ums::fiber* f : {&idle, &usual, &urgent}) f->join();
    });
}
