// SPDX-License-Identifier: MIT
#include "ums/fiber_ref.hpp"

#include "sched/access.hpp"
#include "sched/wake.hpp"

namespace ums {

using sched::access;

void fiber_ref::unpark() const noexcept { sched::unpark(*who_); }

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

}  // namespace ums
