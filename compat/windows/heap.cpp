// SPDX-License-Identifier: MIT

// Heaps: the C library's memory, with a head before each block that says whose it is and how large. A heap of one's
// own keeps its blocks in a list, so that all of them go when it is destroyed.
//
// In uninterrupted sections: who is stopped inside the C library's heap would stop everybody.

#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "windows/guard.hpp"
#include "windows/last_error.hpp"
#include "windows/object.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

struct heap;

struct alignas(16) block {
    heap* of;
    SIZE_T bytes;
    block* next;
    block* previous;
};

struct heap {
    std::uint32_t lock = 0;
    block* blocks = nullptr;  // Guarded by it. Not the process's.
};

heap process_heap;

// Guarded by the dispatcher's lock. Never destroyed.
std::set<const heap*>& heaps() {
    static auto* const all = new std::set<const heap*>;
    return *all;
}

heap* find_heap(HANDLE handle) noexcept {
    auto* const h = static_cast<heap*>(handle);
    if (h == &process_heap) return h;
    const guard hold{dispatcher};
    return heaps().contains(h) ? h : nullptr;
}

void link(heap& h, block& b) noexcept {
    b.of = &h;
    if (&h == &process_heap) return;
    const guard hold{h.lock};
    b.previous = nullptr;
    b.next = h.blocks;
    if (b.next != nullptr) b.next->previous = &b;
    h.blocks = &b;
}

void unlink(heap& h, block& b) noexcept {
    b.of = nullptr;
    if (&h == &process_heap) return;
    const guard hold{h.lock};
    (b.previous != nullptr ? b.previous->next : h.blocks) = b.next;
    if (b.next != nullptr) b.next->previous = b.previous;
}

// The block's head; null if it is not of that heap.
block* head(const heap* h, const void* at) noexcept {
    auto* const b = static_cast<block*>(const_cast<void*>(at)) - 1;
    return h != nullptr && at != nullptr && b->of == h ? b : nullptr;
}

constexpr SIZE_T most = ~SIZE_T{0} / 2;

}  // namespace

HANDLE GetProcessHeap() { return &process_heap; }

HANDLE HeapCreate(DWORD, SIZE_T, SIZE_T) {
    const uninterrupted section;
    auto* const made = new (std::nothrow) heap;
    if (made == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY);
    const guard hold{dispatcher};
    heaps().insert(made);
    return made;
}

BOOL HeapDestroy(HANDLE handle) {
    const uninterrupted section;
    auto* const h = static_cast<heap*>(handle);
    {
        const guard hold{dispatcher};
        if (heaps().erase(h) == 0) return fail(ERROR_INVALID_HANDLE);
    }
    while (h->blocks != nullptr) {
        block* const b = h->blocks;
        h->blocks = b->next;
        std::free(b);
    }
    delete h;
    return TRUE;
}

// As documented, a heap's functions do not set the last error, except for a heap that is not there.
LPVOID HeapAlloc(HANDLE handle, DWORD flags, SIZE_T bytes) {
    heap* const h = find_heap(handle);
    if (h == nullptr) return fail(ERROR_INVALID_HANDLE);
    if (bytes > most) return nullptr;
    const uninterrupted section;
    const SIZE_T whole = sizeof(block) + bytes;
    void* const at = (flags & HEAP_ZERO_MEMORY) != 0 ? std::calloc(1, whole) : std::malloc(whole);
    if (at == nullptr) return nullptr;
    auto* const b = static_cast<block*>(at);
    b->bytes = bytes;
    link(*h, *b);
    return b + 1;
}

LPVOID HeapReAlloc(HANDLE handle, DWORD flags, LPVOID at, SIZE_T bytes) {
    heap* const h = find_heap(handle);
    if (h == nullptr) return fail(ERROR_INVALID_HANDLE);
    block* b = head(h, at);
    if (b == nullptr) return fail(ERROR_INVALID_PARAMETER);
    if (bytes > most) return nullptr;
    const SIZE_T old = b->bytes;
    if ((flags & HEAP_REALLOC_IN_PLACE_ONLY) != 0) {
        if (bytes > old) return nullptr;
        b->bytes = bytes;
        return at;
    }
    const uninterrupted section;
    unlink(*h, *b);
    auto* const moved = static_cast<block*>(std::realloc(b, sizeof(block) + bytes));
    if (moved == nullptr) return link(*h, *b), nullptr;
    moved->bytes = bytes;
    link(*h, *moved);
    if ((flags & HEAP_ZERO_MEMORY) != 0 && bytes > old)
        std::memset(reinterpret_cast<char*>(moved + 1) + old, 0, bytes - old);
    return moved + 1;
}

BOOL HeapFree(HANDLE handle, DWORD, LPVOID at) {
    heap* const h = find_heap(handle);
    if (h == nullptr) return fail(ERROR_INVALID_HANDLE);
    if (at == nullptr) return TRUE;
    block* const b = head(h, at);
    if (b == nullptr) return fail(ERROR_INVALID_PARAMETER);
    const uninterrupted section;
    unlink(*h, *b);
    std::free(b);
    return TRUE;
}

SIZE_T HeapSize(HANDLE handle, DWORD, LPCVOID at) {
    const block* const b = head(find_heap(handle), at);
    return b != nullptr ? b->bytes : ~SIZE_T{0};
}

HLOCAL LocalAlloc(UINT flags, SIZE_T bytes) {
    void* const at =
        HeapAlloc(&process_heap, (flags & LMEM_ZEROINIT) != 0 ? HEAP_ZERO_MEMORY : 0, bytes);
    if (at == nullptr) SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return at;
}
HLOCAL LocalFree(HLOCAL at) { return HeapFree(&process_heap, 0, at) != FALSE ? nullptr : at; }
HGLOBAL GlobalAlloc(UINT flags, SIZE_T bytes) { return LocalAlloc(flags, bytes); }
HGLOBAL GlobalFree(HGLOBAL at) { return LocalFree(at); }
