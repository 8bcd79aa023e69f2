// SPDX-License-Identifier: MIT
#include "sched/policies/urgent_first.hpp"

#include "sched/fiber/access.hpp"

namespace ums::sched {

namespace {
constexpr unsigned none = ~0u;
}

void urgent_first_policy::ready(fiber_ref f, unsigned) noexcept {
    fiber& it = *access::fiber_of(f);
    const os::lock_guard guard{lock_};
    const unsigned level = level_of(it);
    it.kept.place.set(level + 1);
    ready_[level].push_back(f);
    size_.add(1);
}

// Returns the level that has its turn: of the levels whose budget is used up, the least urgent;
// otherwise the most urgent from `least` on. `none`: there is none. Each level that is passed over
// counts it, also if that is in favour of a fiber that continues.
unsigned urgent_first_policy::choose(unsigned least) noexcept {
    unsigned chosen = none;
    for (unsigned level = levels; level-- > 0;) {
        if (ready_[level].empty()) continue;
        if (passed_over_[level] >= budget || (chosen == none && level >= least)) chosen = level;
    }
    for (unsigned level = 0; level < levels; ++level)
        if (level == chosen || ready_[level].empty())
            passed_over_[level] = 0;
        else
            ++passed_over_[level];
    return chosen;
}

fiber_ref urgent_first_policy::take(unsigned level) noexcept {
    if (level == none) return {};
    const fiber_ref f = ready_[level].pop_front();
    access::fiber_of(f)->kept.place.set(0);
    size_.set(size_.get() - 1);
    return f;
}

fiber_ref urgent_first_policy::next(unsigned) noexcept {
    if (size_.get() == 0) return {};
    const os::lock_guard guard{lock_};
    return take(choose(0));
}

fiber_ref urgent_first_policy::instead_of(fiber_ref f, unsigned) noexcept {
    if (size_.get() == 0) return {};
    const os::lock_guard guard{lock_};
    return take(choose(level_of(*access::fiber_of(f))));
}

void urgent_first_policy::raised(fiber_ref f) noexcept {
    fiber& it = *access::fiber_of(f);
    const os::lock_guard guard{lock_};
    // A level beyond the last: the fiber is not ready, or not here. If it is here, nothing changes
    // the level meanwhile; if it is not, any value will do, because the fiber is not found.
    const unsigned level = it.kept.place.get() - 1;
    const unsigned to = level_of(it);
    if (level >= levels || to <= level) return;
    // Goes once round. The fiber is not found if it is ready in another cluster.
    fiber_queue& from = ready_[level];
    for (std::size_t n = from.size(); n != 0; --n) {
        const fiber_ref other = from.pop_front();
        if (other != f) {
            from.push_back(other);
            continue;
        }
        it.kept.place.set(to + 1);
        ready_[to].push_back(f);
    }
}

}  // namespace ums::sched
