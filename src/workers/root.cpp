// SPDX-License-Identifier: MIT
//
// The layout of the UMS API's workers and schedulers, for readers from outside: see
// runtime/root.hpp.

#include "runtime/root.hpp"

#include "runtime/version.hpp"
#include "workers/worker/context.hpp"

#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // As in runtime/root.cpp.

namespace ums::scheduling {

struct look_inside {
    static consteval rt::root all() {
        static_assert(sizeof(worker_state) == sizeof(std::uint32_t));
        rt::root r{"umswork", rt::version_text};
        r.place("contexts", &contexts);
        r.value("contexts.blocks", offsetof(context_table, blocks_));
        r.value("contexts.blocks_most", context_table::blocks);
        r.value("contexts.per_block", context_table::per_block);
        r.value("context.size", sizeof(context));
        r.value("context.self", offsetof(context, self));    // 64 bits; 0: free.
        r.value("context.state", offsetof(context, state));  // worker_state.hpp has the numbers.
        r.value("context.state_mask", state_mask);
        r.value("context.locked", locked);  // Its registers are not saved yet.
        r.value("context.sp", offsetof(context, registers) + offsetof(arch::context, sp));
        r.value("context.ip", offsetof(context, registers) + offsetof(arch::context, ip));
        r.value("context.bp", offsetof(context, registers) + offsetof(arch::context, bp));
        r.value("context.worker", offsetof(context, thread));  // Null if it is no worker's.
        r.value("context.scheduler", offsetof(context, scheduler));
        r.value("context.partner", offsetof(context, partner));
        r.value("context.switches", offsetof(context, switches));
        r.value("context.tid", offsetof(context, tid));
        return r;
    }
};

}  // namespace ums::scheduling

extern "C" [[gnu::visibility("hidden")]] constinit const ums::rt::root ums_scheduling_root =
    ums::scheduling::look_inside::all();

// So that a program without a runtime contains that description, too.
[[gnu::used]] static const ums::rt::root* const description = &ums_root;

asm(R"(
        .pushsection .note.ums, "a", @note
        .balign 4
        .long   7, 8, 2
        .asciz  "libums"
        .balign 4
        .quad   ums_scheduling_root - .
        .popsection
)");
