// SPDX-License-Identifier: MIT

// VirtualAlloc() and its kin. A reservation is a mapping without access; committing gives access, decommitting gives
// the memory back. What is reserved is remembered, with the protection of each run of pages that have the same: how much
// is reserved costs nothing.

#include <cerrno>
#include <iterator>
#include <map>
#include <new>
#include <sys/mman.h>

#include "windows/guard.hpp"
#include "windows/last_error.hpp"
#include "windows/object.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

constexpr std::uintptr_t page = 4096, granularity = 64 * 1024;

struct reservation {
    using protections = std::map<std::uintptr_t, DWORD>;
    std::size_t bytes;
    protections runs;  // By their first page; each goes on to the next. 0: not committed.
};
// By their start. Guarded by the dispatcher's lock. Never destroyed.
using reservations = std::map<std::uintptr_t, reservation>;
reservations& all() {
    static auto* const made = new reservations;
    return *made;
}

// PROT_ flags, or -1.
int flags_of(DWORD protection) noexcept {
    switch (protection) {
        case PAGE_NOACCESS:
            return PROT_NONE;
        case PAGE_READONLY:
            return PROT_READ;
        case PAGE_READWRITE:
            return PROT_READ | PROT_WRITE;
        case PAGE_EXECUTE:
            return PROT_EXEC;
        case PAGE_EXECUTE_READ:
            return PROT_READ | PROT_EXEC;
        case PAGE_EXECUTE_READWRITE:
            return PROT_READ | PROT_WRITE | PROT_EXEC;
        default:
            return -1;
    }
}

// The pages that a range touches, within one reservation. Under the lock.
struct range {
    reservations::iterator in = all().end();
    std::uintptr_t from = 0;
    std::size_t bytes = 0;

    range(const void* address, std::size_t size) noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        auto next = all().upper_bound(at);
        if (next == all().begin() || size == 0) return;
        --next;
        std::uintptr_t end = 0;
        if (__builtin_add_overflow(at, size, &end) || end > next->first + next->second.bytes)
            return;
        in = next;
        from = at / page * page;
        bytes = (end + page - 1) / page * page - from;
    }
    [[nodiscard]] bool is_there() const noexcept { return in != all().end(); }
    // The protection of the first page, and whether one page or more is not committed.
    [[nodiscard]] DWORD first() const noexcept {
        return std::prev(runs().upper_bound(from))->second;
    }
    [[nodiscard]] bool has_gaps() const noexcept {
        auto run = std::prev(runs().upper_bound(from));
        for (; run != runs().end() && run->first < from + bytes; ++run)
            if (run->second == 0) return true;
        return false;
    }
    // Runs begin and end where it does; no page's protection changes. Throws std::bad_alloc.
    void isolate() const {
        split(from);
        if (from + bytes < in->first + in->second.bytes) split(from + bytes);
    }
    // Requires: isolate().
    void set(DWORD protection) const noexcept {
        const auto own = runs().find(from);
        const auto after = runs().lower_bound(from + bytes);
        own->second = protection;
        runs().erase(std::next(own), after);
        // Not more runs than there are differences.
        if (after != runs().end() && after->second == protection) runs().erase(after);
        if (own != runs().begin() && std::prev(own)->second == protection) runs().erase(own);
    }
    [[nodiscard]] bool protect(int flags) const noexcept {
        return ::mprotect(reinterpret_cast<void*>(from), bytes, flags) == 0;
    }

private:
    [[nodiscard]] reservation::protections& runs() const noexcept { return in->second.runs; }
    // A run begins there.
    void split(std::uintptr_t at) const {
        runs().emplace(at, std::prev(runs().upper_bound(at))->second);
    }
};

LPVOID reserve(std::size_t bytes) {
    const std::size_t whole = (bytes + page - 1) / page * page;
    // Starts are multiples of 64 KiB, as programs expect.
    // MAP_NORESERVE: address space costs nothing until it is touched.
    void* const found = ::mmap(nullptr, whole + granularity, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return fail(ERROR_NOT_ENOUGH_MEMORY);
    auto* const mapped = static_cast<char*>(found);
    const auto at = reinterpret_cast<std::uintptr_t>(mapped);
    const std::uintptr_t start = (at + granularity - 1) / granularity * granularity;
    const std::size_t before = start - at, after = granularity - before;
    if (before != 0) ::munmap(mapped, before);
    if (after != 0) ::munmap(mapped + before + whole, after);
    auto* const made = mapped + before;
    ::mprotect(made, whole, PROT_NONE);
    try {
        all()[start] = {whole, {{start, 0}}};
    } catch (...) {
        ::munmap(made, whole);
        throw;
    }
    return made;
}

}  // namespace

LPVOID VirtualAlloc(LPVOID address, SIZE_T bytes, DWORD type, DWORD protection) {
    constexpr SIZE_T most = ~SIZE_T{0} / 2;
    const int flags = flags_of(protection);
    if (flags < 0 || bytes == 0 || bytes > most || (type & ~(MEM_COMMIT | MEM_RESERVE)) != 0 ||
        type == 0)
        return fail(ERROR_INVALID_PARAMETER);
    const uninterrupted section;
    try {
        const guard hold{dispatcher};
        const bool is_new = address == nullptr || (type & MEM_RESERVE) != 0;
        // Where a reservation comes to lie is the kernel's choice.
        if (is_new && address != nullptr) return fail(ERROR_INVALID_ADDRESS);
        if (is_new && (address = reserve(bytes)) == nullptr) return nullptr;
        if ((type & MEM_COMMIT) == 0) return address;
        const range pages{address, bytes};
        if (!pages.is_there()) return fail(ERROR_INVALID_ADDRESS);
        pages.isolate();
        if (!pages.protect(flags)) return fail(ERROR_NOT_ENOUGH_MEMORY);
        pages.set(protection);
        return reinterpret_cast<LPVOID>(pages.from);
    } catch (const std::bad_alloc&) {
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
}

BOOL VirtualFree(LPVOID address, SIZE_T bytes, DWORD type) try {
    const uninterrupted section;
    const guard hold{dispatcher};
    if (type == MEM_RELEASE) {
        const auto found = all().find(reinterpret_cast<std::uintptr_t>(address));
        if (bytes != 0) return fail(ERROR_INVALID_PARAMETER);
        if (found == all().end()) return fail(ERROR_INVALID_ADDRESS);
        ::munmap(address, found->second.bytes);
        all().erase(found);
        return TRUE;
    }
    if (type != MEM_DECOMMIT) return fail(ERROR_INVALID_PARAMETER);
    if (bytes == 0) {
        const auto found = all().find(reinterpret_cast<std::uintptr_t>(address));
        if (found == all().end()) return fail(ERROR_INVALID_ADDRESS);
        bytes = found->second.bytes;
    }
    const range pages{address, bytes};
    if (!pages.is_there()) return fail(ERROR_INVALID_ADDRESS);
    pages.isolate();
    ::madvise(reinterpret_cast<void*>(pages.from), pages.bytes, MADV_DONTNEED);
    if (!pages.protect(PROT_NONE)) return fail(ERROR_NOT_ENOUGH_MEMORY);
    pages.set(0);
    return TRUE;
} catch (const std::bad_alloc&) {
    return fail(ERROR_NOT_ENOUGH_MEMORY);
}

BOOL VirtualProtect(LPVOID address, SIZE_T bytes, DWORD protection, PDWORD old) try {
    const int flags = flags_of(protection);
    if (flags < 0) return fail(ERROR_INVALID_PARAMETER);
    if (old == nullptr) return fail(ERROR_NOACCESS);
    const uninterrupted section;
    const guard hold{dispatcher};
    const range pages{address, bytes};
    if (!pages.is_there() || pages.has_gaps()) return fail(ERROR_INVALID_ADDRESS);
    const DWORD before = pages.first();
    pages.isolate();
    if (!pages.protect(flags)) return fail(ERROR_ACCESS_DENIED);
    pages.set(protection);
    *old = before;
    return TRUE;
} catch (const std::bad_alloc&) {
    return fail(ERROR_NOT_ENOUGH_MEMORY);
}
