// SPDX-License-Identifier: MIT
#include "ums/stop_point.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <ucontext.h>
#include <unwind.h>

#include "arch/bare.hpp"
#include "base/atomic.hpp"
#include "ums/worker_thread.hpp"

namespace ums::scheduling {

namespace {

struct range {
    std::uintptr_t first, end;
    [[nodiscard]] bool has(std::uintptr_t at) const noexcept { return at >= first && at < end; }
};
constexpr int most_ranges = 32;
range ranges[most_ranges];
base::atomic<int> range_count{0};
// The program has all of it in one object, there are too many, or they are just being learnt: nothing can be told from
// the address.
base::atomic<bool> is_unknown{true};

bool is_forbidden(std::uintptr_t at) noexcept {
    // relaxed: see is_stop_point().
    return std::any_of(ranges, ranges + range_count.load(base::relaxed),
                       [at](const range& r) { return r.has(at); });
}

bool is_named(const char* name) noexcept {
    static constexpr const char* names[] = {"/libc.so",   "/libc-",    "/ld-linux", "/libpthread",
                                            "/libstdc++", "/libc++",   "/libgcc_s", "/libunwind",
                                            "/libums.so", "/libums-w", "/libdl.so"};
    return std::any_of(std::begin(names), std::end(names),
                       [name](const char* n) { return std::strstr(name, n) != nullptr; });
}

// What is learnt before it is published.
struct findings {
    int count = 0;
    bool is_unknown = false;
};

void add(findings& found, const dl_phdr_info& object) noexcept {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        const auto& part = object.dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
        if (found.count == most_ranges) {
            found.is_unknown = true;
            return;
        }
        const std::uintptr_t first = object.dlpi_addr + part.p_vaddr;
        ranges[found.count++] = {first, first + part.p_memsz};
    }
}

bool contains(const dl_phdr_info& object, std::uintptr_t at) noexcept {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        const auto& part = object.dlpi_phdr[i];
        const std::uintptr_t first = object.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && range{first, first + part.p_memsz}.has(at)) return true;
    }
    return false;
}

// Not instrumented: it reads other functions' frames.
UMS_BARE bool may_have_forbidden_frame(const std::uintptr_t* from,
                                       const std::uintptr_t* to) noexcept {
    const int n = range_count.load(base::relaxed);  // relaxed: see is_stop_point().
    for (; from < to; ++from)
        for (int i = 0; i < n; ++i)
            if (*from >= ranges[i].first && *from < ranges[i].end) return true;
    return false;
}

struct walk {
    std::uintptr_t begins_at;  // Where the signal came: below it lies the handler.
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
    w.is_forbidden |= is_forbidden(at);
    return w.is_forbidden ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

void learn_where_not_to_stop() {
    // A stray that outlived the last scheduler may still be asked to stop. relaxed: where its handler has begun, the
    // ranges are those that it reads, but for libraries that came or went.
    is_unknown.store(true, base::relaxed);
    base::compiler_fence();
    findings all;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* into) {
            auto& found = *static_cast<findings*>(into);
            const bool is_program = object->dlpi_name == nullptr || object->dlpi_name[0] == 0;
            const auto heap = reinterpret_cast<std::uintptr_t>(&std::malloc);
            const auto ours = reinterpret_cast<std::uintptr_t>(&learn_where_not_to_stop);
            const bool has_heap = contains(*object, heap);
            // In a shared libums a worker is stopped nowhere; in a static one by its sections only.
            if (is_program && has_heap) found.is_unknown = true;
            if (!is_program && (has_heap || contains(*object, ours) || is_named(object->dlpi_name)))
                add(found, *object);
            return 0;
        },
        &all);
    range_count.store(all.count, base::relaxed);  // relaxed: the next line publishes it.
    // sync(ums.ranges): publishes them to the handlers.
    is_unknown.store(all.is_unknown, base::release);
}

bool is_stop_point(const worker_thread& t, const void* context) noexcept {
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
    const auto top = static_cast<const std::uintptr_t*>(t.stack_top);
    const auto* sp =
        reinterpret_cast<const std::uintptr_t*>(registers[REG_RSP] & ~std::intptr_t{7});
    // On a stack that is not the worker's own nothing is known.
    // sync(ums.ranges): sees the ranges.
    if (is_unknown.load(base::acquire) || is_forbidden(at) || sp >= top ||
        static_cast<std::size_t>(top - sp) * sizeof *sp > t.stack_bytes)
        return false;
    if (!may_have_forbidden_frame(sp, top)) return true;
    walk w{at, &t};
    _Unwind_Backtrace(&step, &w);
    return w.is_complete && !w.is_forbidden;
}

}  // namespace ums::scheduling
