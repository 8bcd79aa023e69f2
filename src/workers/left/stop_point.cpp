// SPDX-License-Identifier: MIT
#include "workers/left/stop_point.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <unwind.h>

#include "arch/bare.hpp"
#include "os/signal/code_map.hpp"
#include "workers/worker/worker_thread.hpp"

// Where the linker puts the functions of UMS_CROSSING.
extern "C" __attribute__((visibility("hidden"))) char __start_ums_crossing[], __stop_ums_crossing[];

namespace ums::scheduling {

namespace {

os::code_map forbidden;

// Not instrumented, because it reads other functions' frames.
UMS_BARE bool may_have_forbidden_frame(const std::uintptr_t* from,
                                       const std::uintptr_t* to) noexcept {
    for (; from < to; ++from)
        if (forbidden.has(*from)) return true;
    return false;
}

struct walk {
    std::uintptr_t begins_at;  // Where the signal arrived: the frames below it are the handler's.
    const worker_thread* of;
    bool has_begun = false, is_forbidden = false, is_complete = false;
};

_Unwind_Reason_Code step(_Unwind_Context* frame, void* walk_) {
    auto& w = *static_cast<walk*>(walk_);
    const auto at = static_cast<std::uintptr_t>(_Unwind_GetIP(frame));
    if (!w.has_begun) {
        w.has_begun = at == w.begins_at;
        return _URC_NO_REASON;
    }
    if (is_first_frame(reinterpret_cast<const void*>(_Unwind_GetRegionStart(frame)))) {
        w.is_complete = true;
        return _URC_END_OF_STACK;
    }
    w.is_forbidden |= forbidden.has(at);
    return w.is_forbidden ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

void learn_where_not_to_stop() {
    // Meanwhile a stray that outlived the last scheduler may still be asked to stop.
    forbidden.begin_learning();
    forbidden.add({reinterpret_cast<std::uintptr_t>(__start_ums_crossing),
                   reinterpret_cast<std::uintptr_t>(__stop_ums_crossing)});
    bool has_heap_of_its_own = false;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* program_has_heap) {
            const bool is_program = object->dlpi_name == nullptr || object->dlpi_name[0] == 0;
            const bool has_heap =
                os::contains(*object, reinterpret_cast<std::uintptr_t>(&std::malloc));
            const bool is_ours =
                os::contains(*object, reinterpret_cast<std::uintptr_t>(&learn_where_not_to_stop));
            // In a shared libums the whole object is forbidden, in a static one only its sections
            // are. Windows' names on this API hold locks of their own.
            const bool is_compat =
                !is_program && std::strstr(object->dlpi_name, "/libums_compat.") != nullptr;
            if (!is_program &&
                (has_heap || is_ours || is_compat || os::is_runtime_library(object->dlpi_name)))
                forbidden.add(*object);
            // Everything is in one object, so addresses tell nothing.
            if (is_program && has_heap) *static_cast<bool*>(program_has_heap) = true;
            return 0;
        },
        &has_heap_of_its_own);
    forbidden.end_learning(!has_heap_of_its_own);
}

bool is_stop_point(const worker_thread& t, const void* context) noexcept {
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
    const auto top = static_cast<const std::uintptr_t*>(t.stack_top);
    const auto* sp =
        reinterpret_cast<const std::uintptr_t*>(registers[REG_RSP] & ~std::intptr_t{7});
    // Nothing is known about a stack that is not the worker's own.
    if (!forbidden.is_known() || forbidden.has(at) || sp >= top ||
        static_cast<std::size_t>(top - sp) * sizeof *sp > t.stack_bytes)
        return false;
    if (!may_have_forbidden_frame(sp, top)) return true;
    walk w{at, &t};
    _Unwind_Backtrace(&step, &w);
    return w.is_complete && !w.is_forbidden;
}

}  // namespace ums::scheduling
