// SPDX-License-Identifier: MIT
#include "mem/guard.hpp"

#include <cstdio>

#include "os/memory.hpp"

namespace ums::mem {

namespace {
constexpr int madv_guard_install = 102;  // Newer than Debian 12's headers.
}

const char* name_of(guard_kind kind) noexcept {
    return kind == guard_kind::lightweight ? "lightweight" : "mprotect";
}

bool has_lightweight_guards() noexcept {
    void* page = os::map(os::page_bytes);
    if (page == nullptr) return false;
    const bool works = install_guard(guard_kind::lightweight, page, os::page_bytes) == 0;
    os::unmap(page, os::page_bytes);
    return works;
}

std::size_t most_guards(guard_kind kind) noexcept {
    if (kind == guard_kind::lightweight) return ~std::size_t{0};
    unsigned long mappings = 65'530;  // The kernel's default.
    if (std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "re")) {
        if (std::fscanf(file, "%lu", &mappings) != 1) mappings = 65'530;
        std::fclose(file);
    }
    // A guard and the stack above it are a mapping each. A program without any left cannot even
    // report that, so some stay free.
    constexpr unsigned long kept_back = 512;
    return mappings > kept_back ? (mappings - kept_back) / 2 : 0;
}

long install_guard(guard_kind kind, void* at, std::size_t bytes) noexcept {
    return kind == guard_kind::lightweight ? os::system.madvise(at, bytes, madv_guard_install)
                                           : os::system.mprotect(at, bytes, PROT_NONE);
}

}  // namespace ums::mem
