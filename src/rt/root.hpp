// SPDX-License-Identifier: MIT
#pragma once

// rt/root.hpp: where a debugger, a core-dump reader or `ums top` begins.
//
// The symbol `ums_root` is exported and its layout versioned. From it every slab, and in every slab every stack's
// descriptor, can be found by arithmetic alone: nothing is stopped and nothing locked. A reader of a
// live process must expect a descriptor to change under its eyes.

#include <cstdint>

#include "mem/slab.hpp"

namespace ums::rt {

struct root {
    char magic[8];          // "umsroot"
    std::uint32_t version;  // Of this layout: 1.
    std::uint32_t bytes;    // sizeof(root)
    const void* slabs;      // base::atomic<mem::slab*>*: newest first, linked by `next`.
    // Offsets in a slab:
    std::uint32_t slab_next, slab_stacks, slab_stride, slab_guard, slab_head_bytes, slab_count,
        slab_carved;
    // The descriptor of stack i lies at (stacks + (i+1) * stride - (i * colour_factor % colours) * 64 -
    // head_bytes) rounded down to 64.
    std::uint32_t colour_factor, colours;
    // Offsets in it:
    std::uint32_t fiber_id;  // 64 bits; 0: the stack is free.
    // context: stack pointer, instruction pointer, frame pointer of a fiber that does not run.
    std::uint32_t fiber_context, fiber_name, fiber_word, fiber_run;
};

}  // namespace ums::rt

extern "C" const ums::rt::root ums_root;
