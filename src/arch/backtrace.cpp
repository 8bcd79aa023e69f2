// SPDX-License-Identifier: MIT
#include "arch/backtrace.hpp"

#include <unwind.h>

extern "C" void ums_call_above(const ums::arch::context* from, void (*f)(void*),
                               void* argument) noexcept;

namespace ums::arch {

namespace {

struct collection {
    const void** addresses;
    std::size_t most;
    std::size_t count = 0;
    bool is_above = false;  // Past ums_call_above.
};

_Unwind_Reason_Code collect(_Unwind_Context* frame, void* into) {
    auto& c = *static_cast<collection*>(into);
    if (!c.is_above) {
        c.is_above =
            _Unwind_GetRegionStart(frame) == reinterpret_cast<_Unwind_Ptr>(&ums_call_above);
        return _URC_NO_REASON;
    }
    const _Unwind_Ptr ip = _Unwind_GetIP(frame);
    if (ip == 0 || c.count == c.most) return _URC_END_OF_STACK;
    c.addresses[c.count++] = reinterpret_cast<const void*>(ip);
    return _URC_NO_REASON;
}

}  // namespace

std::size_t backtrace(const context& of, const void** addresses, std::size_t most) noexcept {
    collection c{addresses, most};
    ums_call_above(
        &of, [](void* into) { _Unwind_Backtrace(&collect, into); }, &c);
    return c.count;
}

}  // namespace ums::arch
