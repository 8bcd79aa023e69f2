// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/stack_cache.hpp: free stacks of the default size, for the spawns and ends of one
// processor's fibers. Used under carry/ownership.hpp.
//
// The stack that came last is used first, because it is the warmest. Surplus stacks go to the depot
// that all processors share (mem/stack_depot.hpp), in batches.

#include <cstdint>

#include "arch/sanitizer.hpp"
#include "mem/stack_depot.hpp"

namespace ums::sched {

class stack_cache {
public:
    static constexpr std::uint32_t most = 256;
    static constexpr std::uint32_t batch = 64;  // How many stacks to take out of the depot at once.

    // `size_class` is that of the stacks it holds.
    explicit stack_cache(std::uint32_t size_class) noexcept : class_{size_class} {}
    stack_cache(const stack_cache&) = delete;
    stack_cache& operator=(const stack_cache&) = delete;

    [[nodiscard]] UMS_ALWAYS_INLINE mem::stack_head* take() noexcept {
        mem::stack_head* const head = first_;
        if (head != nullptr) {
            first_ = head->next_free;
            --count_;
            arch::happens_before(head);  // The fiber that put it there is in the processor's past.
        }
        return head;
    }
    // Whether another stack makes it spill some.
    [[nodiscard]] UMS_ALWAYS_INLINE bool is_full() const noexcept { return count_ >= most; }
    // Takes a stack of its size.
    UMS_ALWAYS_INLINE void put(mem::stack_head& head) noexcept {
        add(head);
        if (count_ > most) [[unlikely]]
            spill(most / 2);
    }
    // The same if it is not full.
    UMS_ALWAYS_INLINE void add(mem::stack_head& head) noexcept {
        head.next_free = first_;
        first_ = &head;
        ++count_;
    }
    [[nodiscard]] UMS_ALWAYS_INLINE bool is_for(const mem::stack_head& head) const noexcept {
        return head.home->size_class == class_;
    }

    // Takes a list of `n` stacks, linked by `next_free`.
    void adopt(mem::stack_head* list, std::uint32_t n) noexcept;
    // Gives all stacks to the depot except the `keep` warmest.
    void spill(std::uint32_t keep) noexcept;

private:
    mem::stack_head* first_ = nullptr;
    std::uint32_t count_ = 0;
    const std::uint32_t class_;
};

}  // namespace ums::sched
