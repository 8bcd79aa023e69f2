// SPDX-License-Identifier: MIT
#include "ums/fiber_ref.hpp"

#include "base/assert.hpp"
#include "os/no_stop.hpp"
#include "sched/fiber/access.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/wake.hpp"

namespace ums {

using sched::access;

namespace {

sched::fiber& named_by(fiber_ref r) noexcept {
    sched::fiber* const f = access::fiber_of(r);
    UMS_ASSERT(f != nullptr,
               "a fiber_ref that names no fiber was asked for, or given, what only a "
               "fiber has");
    return *f;
}

}  // namespace

void fiber_ref::unpark() const noexcept {
    UMS_ASSERT(who_ != nullptr,
               "unpark() of an empty fiber_ref: expected one that names a fiber or a thread");
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

std::uint64_t fiber_ref::tag() const noexcept { return named_by(*this).tag.get(); }

void fiber_ref::set_tag(std::uint64_t value) const noexcept { named_by(*this).tag.set(value); }

int fiber_ref::priority() const noexcept { return named_by(*this).wanted.priority.get(); }

int fiber_ref::effective_priority() const noexcept {
    return named_by(*this).wanted.effective_priority();
}

void fiber_ref::set_priority(int value) const noexcept {
    UMS_ASSERT(value >= least_priority && value <= most_priority, "a priority out of range");
    named_by(*this).wanted.priority.set(static_cast<std::int8_t>(value));
}

deadline fiber_ref::deadline() const noexcept {
    const os::nanoseconds at = named_by(*this).wanted.deadline.get();
    return at == 0 ? ums::deadline::max() : ums::deadline{std::chrono::nanoseconds{at}};
}

void fiber_ref::set_deadline(ums::deadline when) const noexcept {
    named_by(*this).wanted.set_deadline(when);
}

unsigned fiber_ref::weight() const noexcept { return named_by(*this).wanted.effective_weight(); }

void fiber_ref::set_weight(unsigned value) const noexcept {
    UMS_ASSERT(value >= 1 && value <= most_weight, "a weight out of range");
    named_by(*this).wanted.weight.set(value);
}

unsigned fiber_ref::group() const noexcept { return named_by(*this).wanted.group.get(); }

void fiber_ref::set_group(unsigned value) const noexcept {
    UMS_ASSERT(value < group_count, "a group out of range");
    named_by(*this).wanted.group.set(static_cast<std::uint8_t>(value));
}

void unpark_all(std::span<const fiber_ref> all) noexcept {
    const os::no_stop claimed_and_not_ready;
    sched::fiber* first = nullptr;
    sched::fiber* last = nullptr;
    for (const fiber_ref one : all) {
        UMS_ASSERT(one, "unpark_all() of an empty fiber_ref: expected fibers or threads");
        sched::fiber* const f = sched::claim_for_unpark(*access::parkable_of(one));
        if (f == nullptr) continue;
        f->link.set(nullptr);
        last != nullptr ? last->link.set(f) : void(first = f);
        last = f;
    }
    sched::ready::all(first);
}

}  // namespace ums
