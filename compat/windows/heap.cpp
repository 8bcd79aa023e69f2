// SPDX-License-Identifier: MIT

// Heaps, on the C library's memory. A heap that the program creates knows its blocks, so that
// HeapDestroy() frees them all.
//
// The calls run in uninterrupted sections: a thread that is stopped inside the C library's heap
// would stop all others.

#include <cstdlib>
#include <new>
#include <set>

#include "windows/guard.hpp"
#include "windows/last_error.hpp"

using namespace ums::windows;

namespace {

struct heap {
    std::uint32_t lock = 0;
    std::set<void*> blocks;  // Guarded by the lock. The process's heap has none.
};

heap process_heap;

}  // namespace

HANDLE GetProcessHeap() { return &process_heap; }

HANDLE HeapCreate(DWORD, SIZE_T, SIZE_T) {
    const uninterrupted section;
    auto* const made = new (std::nothrow) heap;
    return made != nullptr ? made : fail(ERROR_NOT_ENOUGH_MEMORY);
}

BOOL HeapDestroy(HANDLE handle) {
    const uninterrupted section;
    auto* const h = static_cast<heap*>(handle);
    if (h == nullptr || h == &process_heap) return fail(ERROR_INVALID_HANDLE);
    for (void* const block : h->blocks) std::free(block);
    delete h;
    return TRUE;
}

// As documented, these do not set the last error, except for a heap that does not exist.
LPVOID HeapAlloc(HANDLE handle, DWORD flags, SIZE_T bytes) {
    auto* const h = static_cast<heap*>(handle);
    if (h == nullptr) return fail(ERROR_INVALID_HANDLE);
    if (bytes > ~SIZE_T{0} / 2) return nullptr;
    const uninterrupted section;
    const SIZE_T least = bytes != 0 ? bytes : 1;
    void* const at = (flags & HEAP_ZERO_MEMORY) != 0 ? std::calloc(1, least) : std::malloc(least);
    if (at == nullptr || h == &process_heap) return at;
    try {
        const guard hold{h->lock};
        h->blocks.insert(at);
        return at;
    } catch (const std::bad_alloc&) {
        std::free(at);
        return nullptr;
    }
}

BOOL HeapFree(HANDLE handle, DWORD, LPVOID at) {
    auto* const h = static_cast<heap*>(handle);
    if (h == nullptr) return fail(ERROR_INVALID_HANDLE);
    const uninterrupted section;
    if (h != &process_heap && at != nullptr) {
        const guard hold{h->lock};
        if (h->blocks.erase(at) == 0) return fail(ERROR_INVALID_PARAMETER);
    }
    std::free(at);
    return TRUE;
}

HLOCAL LocalAlloc(UINT flags, SIZE_T bytes) {
    void* const at =
        HeapAlloc(&process_heap, (flags & LMEM_ZEROINIT) != 0 ? HEAP_ZERO_MEMORY : 0, bytes);
    if (at == nullptr) SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return at;
}
HLOCAL LocalFree(HLOCAL at) { return HeapFree(&process_heap, 0, at) != FALSE ? nullptr : at; }
