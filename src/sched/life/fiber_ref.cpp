// SPDX-License-Identifier: MIT
#include "ums/fiber_ref.hpp"

#include "base/assert.hpp"
#include "os/no_stop.hpp"
#include "sched/fiber/access.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/wake.hpp"

namespace ums {

using sched::access;

void fiber_ref::unpark() const noexcept {
    UMS_DEBUG_ASSERT(who_ != nullptr, "unpark() of no fiber: was it joined?");
    sched::unpark(*who_);
}

fiber_id fiber_ref::id() const noexcept {
    const sched::fiber* f = access::fiber_of(*this);
    return f != nullptr ? fiber_id{f->id.get()} : fiber_id{};
}

std::string_view fiber_ref::name() const noexcept {
    const sched::fiber* f = access::fiber_of(*this);
    return f != nullptr ? std::string_view{f->name} : std::string_view{};
}

std::uint64_t fiber_ref::tag() const noexcept { return access::fiber_of(*this)->tag.get(); }

void fiber_ref::set_tag(std::uint64_t value) const noexcept {
    access::fiber_of(*this)->tag.set(value);
}

int fiber_ref::priority() const noexcept { return access::fiber_of(*this)->wanted.priority.get(); }

int fiber_ref::effective_priority() const noexcept {
    return access::fiber_of(*this)->wanted.effective_priority();
}

void fiber_ref::set_priority(int value) const noexcept {
    UMS_ASSERT(value >= least_priority && value <= most_priority, "a priority out of range");
    access::fiber_of(*this)->wanted.priority.set(static_cast<std::int8_t>(value));
}

deadline fiber_ref::deadline() const noexcept {
    const os::nanoseconds at = access::fiber_of(*this)->wanted.deadline.get();
    return at == 0 ? ums::deadline::max() : ums::deadline{std::chrono::nanoseconds{at}};
}

void fiber_ref::set_deadline(ums::deadline when) const noexcept {
    access::fiber_of(*this)->wanted.set_deadline(when);
}

unsigned fiber_ref::weight() const noexcept {
    return access::fiber_of(*this)->wanted.effective_weight();
}

void fiber_ref::set_weight(unsigned value) const noexcept {
    UMS_ASSERT(value >= 1 && value <= most_weight, "a weight out of range");
    access::fiber_of(*this)->wanted.weight.set(value);
}

unsigned fiber_ref::group() const noexcept { return access::fiber_of(*this)->wanted.group.get(); }

void fiber_ref::set_group(unsigned value) const noexcept {
    UMS_ASSERT(value < group_count, "a group out of range");
    access::fiber_of(*this)->wanted.group.set(static_cast<std::uint8_t>(value));
}

void unpark_all(std::span<const fiber_ref> all) noexcept {
    const os::no_stop claimed_and_not_ready;
    sched::fiber* first = nullptr;
    sched::fiber* last = nullptr;
    for (const fiber_ref one : all) {
        sched::fiber* const f = sched::claim_for_unpark(*access::parkable_of(one));
        if (f == nullptr) continue;
        f->link.set(nullptr);
        last != nullptr ? last->link.set(f) : void(first = f);
        last = f;
    }
    sched::ready::all(first);
}

}  // namespace ums
