// SPDX-License-Identifier: MIT
#pragma once

// mem/stack_depot.hpp: the stacks that no processor holds.
//
// Size classes are powers of two from 16 KiB to 1 GiB. A free stack is warm (its top page is still
// resident; taken first) or cold (no memory). Processors keep a small cache of warm stacks of the
// default class and exchange batches with the depot.
//
// Blocking: takes a lock; making a new slab is a system call. Never parks.
// Cost:     a new stack costs one guard (about 0.5 us; 0.2 us if many are taken at once) and the
//           first touch of a page (about 1 us); a warm one a few loads.

#include <cstddef>
#include <cstdint>

#include "mem/slab.hpp"
#include "os/lock.hpp"

namespace ums::mem {

struct depot_options {
    std::size_t default_bytes = 256 * 1024;
    guard_kind guard = guard_kind::lightweight;
    std::size_t head_bytes = 256;      // Reserved at the top of each stack, including stack_head.
    std::uint32_t warm_limit = 16384;  // Beyond it, a slab that is wholly free loses its memory.
};

struct depot_stats {
    std::size_t slabs;
    std::size_t carved;   // All stacks that ever existed.
    std::size_t warm;     // Free in the depot, with memory.
    std::size_t cold;     // Free in the depot, without memory.
    std::size_t trimmed;  // How many times a stack's memory was given back.
    std::size_t mapped_bytes;
};

class stack_depot {
public:
    static constexpr std::size_t min_bytes = 16 * 1024;
    static constexpr std::size_t max_bytes = std::size_t{1} << 30;
    // An odd number of pages, so that the tops of the stacks, whose sizes are powers of two, do not
    // fall into the same few sets of the TLB: this saves 2 ns per switch, measured with 10 to 1000
    // fibers.
    static constexpr std::size_t guard_bytes = 68 * 1024;

    // Requires: no stack of an earlier configuration is in use.
    void configure(const depot_options& options) noexcept;

    [[nodiscard]] const depot_options& options() const noexcept { return options_; }
    [[nodiscard]] std::uint32_t default_class() const noexcept { return default_class_; }
    [[nodiscard]] static std::uint32_t class_of(std::size_t bytes) noexcept;
    [[nodiscard]] static std::size_t bytes_of(std::uint32_t size_class) noexcept {
        return min_bytes << size_class;
    }

    // Takes up to `wanted` stacks, linked by next_free. Returns how many it took; 0 if the kernel
    // refuses address space or a guard.
    std::uint32_t take(std::uint32_t size_class, std::uint32_t wanted, stack_head*& list) noexcept;

    // Gives back a list of warm stacks, from `head` on, linked by next_free.
    void give(stack_head* head) noexcept;

    // Gives the memory of every free stack back to the kernel.
    void trim() noexcept;

    // Unmaps everything. Requires: no stack is in use.
    void clear() noexcept;

    [[nodiscard]] depot_stats stats() noexcept;

    // Around a fork(), on both sides of it: nobody changes the depot meanwhile.
    void begin_fork() noexcept { lock_.acquire(); }
    void end_fork() noexcept { lock_.release(); }

private:
    static constexpr std::uint32_t classes = 17;

    // `wanted` is how many more stacks the caller takes, including this one.
    stack_head* take_one(std::uint32_t size_class, std::uint32_t wanted) noexcept;
    stack_head* carve(slab& s, std::uint32_t wanted) noexcept;
    slab* grow(std::uint32_t size_class) noexcept;
    void chill(slab& s) noexcept;
    void list(slab& s) noexcept;

    // Set in configure(), then read-only:
    depot_options options_;
    std::uint32_t default_class_ = 4;
    std::size_t most_stacks_ = ~std::size_t{0};

    os::lock lock_{os::lock_rank::depot};
    // Guarded by lock_:
    slab* with_free_[classes] = {};
    std::size_t stacks_in_class_[classes] = {};
    std::size_t warm_ = 0, cold_ = 0, carved_ = 0, trimmed_ = 0, slabs_ = 0, mapped_ = 0;
};

// The number of bytes from the lowest page of the stack that has memory to its top: how deep the
// stack has been used, in pages. Makes one system call.
std::size_t high_water_bytes(const stack_head& head) noexcept;

}  // namespace ums::mem
