// SPDX-License-Identifier: MIT
#include "carry/detect/report.hpp"

#include "base/assert.hpp"

namespace ums::carry {

bool report_if_blocked(load& w, os::thread_states& states, os::nanoseconds when, bool if_unknown,
                       int free_cpu) noexcept {
    using kind = os::thread_states::kind;
    if (!w.is_of_interest()) return false;
    const std::uint64_t activity = w.activity();
    const int tid = w.tid();
    if (tid == 0) return false;
    UMS_ASSERT(tid > 0, "a load names a kernel thread that cannot be");
    const os::thread_states::seen seen = states.look(tid);
    notice what{cause::unknown, -1, when != 0 ? when : os::now(), tid, free_cpu, activity};
    switch (seen.what) {
        case kind::running:
            return false;
        case kind::unknown:
            if (!if_unknown) return false;
            break;
        case kind::waiting:
            break;
        case kind::in_call:
            what.why = cause::system_call;
            what.call = seen.call;
            break;
        case kind::in_fault:
            what.why = cause::page_fault;
            break;
    }
    if (w.activity() != activity || w.tid() != tid || !w.is_of_interest()) return false;
    if (!w.on_block(what)) return false;
    w.reported_.store(activity, base::relaxed);  // relaxed: a hint.
    return true;
}

}  // namespace ums::carry
