// SPDX-License-Identifier: MIT
#include "rt/root.hpp"

#include <cstddef>

#include "sched/fiber.hpp"
#include "ums/export.hpp"

// The types are not standard-layout (they have a base class with members), but single inheritance
// without virtuals is laid out the same way by every compiler we support; the test reads it back.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

using ums::mem::slab;
using ums::sched::fiber;

extern "C" UMS_EXPORT const ums::rt::root ums_root = {
    .magic = "umsroot",
    .version = 1,
    .bytes = sizeof(ums::rt::root),
    .slabs = &ums::mem::slab_list,
    .slab_next = offsetof(slab, next),
    .slab_stacks = offsetof(slab, stacks),
    .slab_stride = offsetof(slab, stride),
    .slab_guard = offsetof(slab, guard_bytes),
    .slab_head_bytes = offsetof(slab, head_bytes),
    .slab_count = offsetof(slab, count),
    .slab_carved = offsetof(slab, carved),
    .colour_factor = slab::colour_factor,
    .colours = slab::colours,
    .fiber_id = offsetof(fiber, id),
    .fiber_context = offsetof(fiber, context),
    .fiber_name = offsetof(fiber, name),
    .fiber_word = offsetof(fiber, word),
    .fiber_run = offsetof(fiber, run),
};
