// SPDX-License-Identifier: MIT
#include "sched/policies/earliest_deadline.hpp"

#include <algorithm>

#include "sched/fiber/access.hpp"

namespace ums::sched {

std::uint64_t earliest_deadline_policy::due(const fiber& f) const noexcept {
    const os::nanoseconds now = now_(), wanted = f.wanted.deadline.get();
    return static_cast<std::uint64_t>(wanted == 0 ? now + patience : std::max(wanted, now));
}

void earliest_deadline_policy::ready(fiber_ref f, unsigned) noexcept {
    const std::uint64_t at = due(*access::fiber_of(f));
    const os::lock_guard guard{lock_};
    ready_.push(f, at);
    size_.set(ready_.size());
}

fiber_ref earliest_deadline_policy::next(unsigned) noexcept {
    if (size_.get() == 0) return {};
    const os::lock_guard guard{lock_};
    const fiber_ref f = ready_.pop_front();
    size_.set(ready_.size());
    return f;
}

fiber_ref earliest_deadline_policy::instead_of(fiber_ref f, unsigned) noexcept {
    if (size_.get() == 0) return {};
    const std::uint64_t at = due(*access::fiber_of(f));
    const os::lock_guard guard{lock_};
    if (ready_.empty() || ready_.front_key() > at) return {};
    const fiber_ref other = ready_.pop_front();
    size_.set(ready_.size());
    return other;
}

}  // namespace ums::sched
