// SPDX-License-Identifier: MIT
#pragma once

// ums/fiber_ref.hpp: names a fiber without owning it.
//
// A fiber_ref names a fiber, or a plain kernel thread that called this_fiber::ref(), so that others
// can unpark it. A reference is one pointer, and copying it is free.
//
// Blocking: never.
// Lifetime: valid until the fiber has ended: until it has been joined or, if it is detached, until
//           its function has returned. Using it later is undefined.
// Errors:   none; every function but id() and name() requires a reference that is not empty.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>

#include "ums/deadline.hpp"
#include "ums/export.hpp"

namespace ums {

namespace sched {
struct fiber;
struct parkable;
struct access;
}  // namespace sched

// Identifies a fiber among all that ever ran in this process. The default value names none, and so
// does the id of a plain kernel thread.
class fiber_id {
public:
    constexpr fiber_id() noexcept = default;
    constexpr explicit fiber_id(std::uint64_t value) noexcept : value_{value} {}
    [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

private:
    std::uint64_t value_ = 0;
};

[[nodiscard]] constexpr bool operator==(fiber_id a, fiber_id b) noexcept {
    return a.value() == b.value();
}
[[nodiscard]] constexpr std::strong_ordering operator<=>(fiber_id a, fiber_id b) noexcept {
    return a.value() <=> b.value();
}
template <class Char, class Traits>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, fiber_id id) {
    return out << id.value();
}
constexpr std::uint64_t format_as(fiber_id id) noexcept { return id.value(); }

class fiber_ref {
public:
    constexpr fiber_ref() noexcept = default;

    [[nodiscard]] constexpr explicit operator bool() const noexcept { return who_ != nullptr; }
    friend constexpr bool operator==(fiber_ref, fiber_ref) noexcept = default;

    // Lets the fiber's current or next this_fiber::park() return. Several calls before that park
    // count as one. Requires: not empty.
    // Blocking: never. From any fiber or thread, but not from a signal handler.
    // Ordering: what happens before unpark() is visible after the park() that it ends.
    // Cost:     one atomic read-modify-write and a push into a queue; a system call if it has to
    //           wake an idle processor or a plain thread.
    UMS_EXPORT void unpark() const noexcept;

    // The default id for a plain thread.
    [[nodiscard]] UMS_EXPORT fiber_id id() const noexcept;
    // Empty if the fiber has no name. The text lives as long as the fiber.
    [[nodiscard]] UMS_EXPORT std::string_view name() const noexcept;

    // A word that the fiber keeps for its cluster's policy (a priority, a deadline, a pointer).
    // Zero at first. Requires: the reference names a fiber.
    [[nodiscard]] UMS_EXPORT std::uint64_t tag() const noexcept;
    UMS_EXPORT void set_tag(std::uint64_t value) const noexcept;

    // What the built-in policies go by, and your own may: see fiber_options. A change counts from
    // the next time the fiber becomes ready. Requires: names a fiber; the value is in its range.
    [[nodiscard]] UMS_EXPORT int priority() const noexcept;
    UMS_EXPORT void set_priority(int value) const noexcept;
    // Its own, or that of the most urgent fiber that waits for a mutex it holds, if that is higher.
    [[nodiscard]] UMS_EXPORT int effective_priority() const noexcept;
    // deadline::max(): none.
    [[nodiscard]] UMS_EXPORT ums::deadline deadline() const noexcept;
    UMS_EXPORT void set_deadline(ums::deadline when) const noexcept;
    [[nodiscard]] UMS_EXPORT unsigned weight() const noexcept;
    UMS_EXPORT void set_weight(unsigned value) const noexcept;
    [[nodiscard]] UMS_EXPORT unsigned group() const noexcept;
    UMS_EXPORT void set_group(unsigned value) const noexcept;

private:
    friend struct sched::access;
    constexpr explicit fiber_ref(sched::parkable* who) noexcept : who_{who} {}
    sched::parkable* who_ = nullptr;
};

// Calls unpark() on each, but wakes at most one processor of each cluster for all of them; that one
// wakes the next if there is work left. None may be empty.
UMS_EXPORT void unpark_all(std::span<const fiber_ref> all) noexcept;

}  // namespace ums

template <>
struct std::hash<ums::fiber_id> {
    std::size_t operator()(ums::fiber_id id) const noexcept {
        return std::hash<std::uint64_t>{}(id.value());
    }
};
