// SPDX-License-Identifier: MIT
#include "block/report.hpp"

namespace ums::block {

bool report_if_blocked(watched& w, const os::thread_state& state, os::nanoseconds when,
                       bool if_unknown) noexcept {
    using kind = os::thread_state::kind;
    if (!w.is_of_interest()) return false;
    const std::uint64_t activity = w.activity();
    const os::thread_state::seen seen = state.look();
    notice what{cause::unknown, -1, when != 0 ? when : os::now(), activity};
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
    if (w.activity() != activity || !w.is_of_interest()) return false;
    w.on_block(what);
    return true;
}

}  // namespace ums::block
