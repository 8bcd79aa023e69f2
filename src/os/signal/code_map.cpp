// SPDX-License-Identifier: MIT
#include "os/signal/code_map.hpp"

#include <cstring>

#include "base/assert.hpp"

namespace ums::os {

bool is_runtime_library(const char* file) noexcept {
    static constexpr const char* names[] = {"/libc.so",    "/libc-",    "/ld-linux",
                                            "/libpthread", "/libdl.so", "/libstdc++",
                                            "/libc++",     "/libgcc_s", "/libunwind"};
    return std::any_of(std::begin(names), std::end(names),
                       [file](const char* n) { return std::strstr(file, n) != nullptr; });
}

bool contains(const dl_phdr_info& object, std::uintptr_t at) noexcept {
    return std::any_of(
        object.dlpi_phdr, object.dlpi_phdr + object.dlpi_phnum, [&](const auto& part) {
            const std::uintptr_t first = object.dlpi_addr + part.p_vaddr;
            return part.p_type == PT_LOAD && code_map::range{first, first + part.p_memsz}.has(at);
        });
}

void code_map::begin_learning() noexcept {
    // relaxed: a handler that has begun continues with the earlier ranges, which are right except
    // for libraries that came or went.
    is_known_.store(false, base::relaxed);
    base::compiler_fence();
    learnt_ = 0;
    is_full_ = false;
}

void code_map::add(range code) noexcept {
    // relaxed: only the learner changes it.
    UMS_ASSERT(!is_known_.load(base::relaxed), "a map of code is learnt between begin and end");
    UMS_ASSERT(code.first <= code.end, "a range of code ends before it begins");
    if (learnt_ == most)
        is_full_ = true;
    else
        ranges_[learnt_++] = code;
}

void code_map::add(const dl_phdr_info& object) noexcept {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        const auto& part = object.dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
        const std::uintptr_t first = object.dlpi_addr + part.p_vaddr;
        add({first, first + part.p_memsz});
    }
}

void code_map::end_learning(bool complete) noexcept {
    count_.store(learnt_, base::relaxed);  // relaxed: the next line publishes it.
    // sync(code_map): publishes the ranges to the handlers.
    is_known_.store(complete && !is_full_, base::release);
}

}  // namespace ums::os
