// SPDX-License-Identifier: MIT
#include "mem/guard.hpp"

#include <cstdlib>
#include <sys/uio.h>

#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "os/memory.hpp"
#include "os/system.hpp"

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
    const long fd = os::system.open_to_read("/proc/sys/vm/max_map_count");
    if (fd >= 0) {
        char text[32] = {};
        const long n = os::system.read_from_start(static_cast<int>(fd), text, sizeof text - 1);
        if (n > 0) mappings = std::strtoul(text, nullptr, 10);
        os::system.close_fd(static_cast<int>(fd));
    }
    // A guard and the stack above it are one mapping each. A program without any mappings left
    // cannot even report that, so some stay free.
    constexpr unsigned long kept_back = 512;
    return mappings > kept_back ? (mappings - kept_back) / 2 : 0;
}

long install_guard(guard_kind kind, void* at, std::size_t bytes) noexcept {
    return kind == guard_kind::lightweight ? os::system.madvise(at, bytes, madv_guard_install)
                                           : os::system.mprotect(at, bytes, PROT_NONE);
}

std::size_t install_guards(guard_kind kind, char* at, std::size_t bytes, std::size_t stride,
                           std::size_t n) noexcept {
    UMS_DEBUG_ASSERT(n <= most_at_once && bytes < stride,
                     "more guards than fit, or too large ones");
    std::size_t done = 0;
    // Valgrind 3.19 complains about a call that it does not know.
    if (kind == guard_kind::lightweight && n > 1 && !arch::under_valgrind()) {
        iovec guards[most_at_once];
        for (std::size_t i = 0; i < n; ++i) guards[i] = {at + i * stride, bytes};
        const long advised = os::system.madvise_many(guards, n, madv_guard_install);
        if (advised > 0) done = static_cast<std::size_t>(advised) / bytes;
    }
    while (done < n && install_guard(kind, at + done * stride, bytes) == 0) ++done;
    return done;
}

}  // namespace ums::mem
