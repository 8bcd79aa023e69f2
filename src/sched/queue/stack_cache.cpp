// SPDX-License-Identifier: MIT
#include "sched/queue/stack_cache.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "sched/queue/depot.hpp"

namespace ums::sched {

void stack_cache::adopt(mem::stack_head* list, std::uint32_t n) noexcept {
    while (list != nullptr) {
        mem::stack_head* const next = list->next_free;
        UMS_ASSERT(is_for(*list), "a cache of stacks was given one of another size");
        UMS_ASSERT(reinterpret_cast<std::uintptr_t>(list) % 16 == 0,
                   "a stack's head is not aligned");
        list->next_free = first_;
        first_ = list;
        list = next;
    }
    count_ += n;
    UMS_ASSERT((count_ == 0) == (first_ == nullptr), "a cache has lost count of its stacks");
}

void stack_cache::spill(std::uint32_t keep) noexcept {
    mem::stack_head** at = &first_;
    for (std::uint32_t i = 0; i < keep && *at != nullptr; ++i) at = &(*at)->next_free;
    mem::stack_head* const rest = *at;
    *at = nullptr;
    count_ = std::min(count_, keep);
    UMS_ASSERT((count_ == 0) == (first_ == nullptr), "a cache has lost count of its stacks");
    if (rest != nullptr) depot().give(rest);
}

}  // namespace ums::sched
