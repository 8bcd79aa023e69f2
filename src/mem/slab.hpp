// SPDX-License-Identifier: MIT
#pragma once

// mem/slab.hpp: many stacks in one mapping.
//
//   | slab header, cold list | guard | stack 0 | guard | stack 1 | ... |
//
// A stack grows down towards its guard. Its head lies at its top, a few cache lines below the very
// end. (The distance is the colour: tops at equal offsets within a page would all compete for the
// same sets of the L1 cache.) The fiber's descriptor is built in the head, so an idle fiber touches
// one page.
//
// Every slab is linked from slab_list from birth to death, so a debugger, a core-dump reader or the
// overflow report can find every stack without a lock.

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "mem/guard.hpp"

namespace ums::mem {

struct slab;

// The first member of whatever lives at the top of a stack. It stays valid while the stack is
// reused.
struct stack_head {
    slab* home;
    std::uint32_t index;
    unsigned valgrind_id;
    // Guarded by the owner of the free stack: a processor's cache or the depot.
    stack_head* next_free;

    [[nodiscard]] char* bottom() const noexcept;
    [[nodiscard]] std::size_t usable_bytes() const noexcept;
};

struct slab {
    // By how much the tops of neighbouring stacks differ: 48 steps of a cache line, all within the
    // top page.
    static constexpr std::uint32_t colour_factor = 7, colours = 48;

    // Set once in make(), then read-only:
    slab* next;         // Older slabs.
    char* stacks;       // Address of the first guard.
    std::size_t bytes;  // The size of the whole mapping.
    std::size_t stride;
    std::size_t guard_bytes;
    std::size_t head_bytes;
    std::uint32_t count;
    std::uint32_t size_class;

    // Guarded by the depot's lock:
    std::uint32_t guarded;  // Stacks below this index have a guard.
    std::uint32_t carved;   // Stacks below this index have a head, too; never more than `guarded`.
    std::uint32_t cold_count;  // Carved stacks without memory; their indices are in cold().
    std::uint32_t warm_count;
    stack_head* warm;      // Free stacks that still have memory.
    slab* next_with_free;  // The next in the depot's list of slabs that can give a stack.
    bool is_listed;

    [[nodiscard]] std::uint32_t* cold() noexcept {
        return reinterpret_cast<std::uint32_t*>(this + 1);
    }
    [[nodiscard]] char* bottom(std::uint32_t index) const noexcept {
        return stacks + index * stride + guard_bytes;
    }
    [[nodiscard]] std::size_t usable() const noexcept { return stride - guard_bytes; }
    [[nodiscard]] bool has_free() const noexcept {
        return warm != nullptr || cold_count != 0 || carved != count;
    }

    // Where the head of stack `index` lies. It depends on the index alone, so that a reader from
    // outside can compute it.
    [[nodiscard]] stack_head* head(std::uint32_t index) const noexcept {
        const std::size_t colour = (index * colour_factor % colours) * 64u;
        char* top = stacks + (index + std::size_t{1}) * stride - colour - head_bytes;
        return reinterpret_cast<stack_head*>(reinterpret_cast<std::uintptr_t>(top) &
                                             ~std::uintptr_t{63});
    }

    // Returns null if the kernel gives no more address space.
    static slab* make(std::uint32_t size_class, std::size_t usable_bytes, std::size_t guard_bytes,
                      std::size_t head_bytes, std::uint32_t count) noexcept;
};

// All slabs, newest first.
extern base::atomic<slab*> slab_list;

// Unmaps every slab. Requires: no stack is in use.
void release_all_slabs() noexcept;

// The stack whose guard or usable area holds the address, or null. Async-signal-safe.
struct located {
    slab* in;
    std::uint32_t index;
    bool in_guard;
};
bool locate(const void* address, located& found) noexcept;

inline char* stack_head::bottom() const noexcept { return home->bottom(index); }
inline std::size_t stack_head::usable_bytes() const noexcept { return home->usable(); }

}  // namespace ums::mem
