// SPDX-License-Identifier: MIT
#include "mem/slab.hpp"

#include <new>

#include "base/assert.hpp"
#include "os/memory.hpp"

namespace ums::mem {

constinit base::atomic<slab*> slab_list;

slab* slab::make(std::uint32_t size_class, std::size_t usable_bytes, std::size_t guard_bytes,
                 std::size_t head_bytes, std::uint32_t count) noexcept {
    const std::size_t header =
        os::round_up(sizeof(slab) + count * sizeof(std::uint32_t), os::page_bytes);
    const std::size_t stride = usable_bytes + guard_bytes;
    UMS_DEBUG_ASSERT(count != 0 && head_bytes + slab::colours * 64 < usable_bytes,
                     "a stack has no room below its head");
    const std::size_t bytes = header + stride * count;
    void* at = os::map(bytes);
    if (at == nullptr) return nullptr;
    // A huge page would give every idle fiber two megabytes.
    os::system.madvise(at, bytes, MADV_NOHUGEPAGE);
    auto* s = new (at) slab{};
    s->stacks = static_cast<char*>(at) + header;
    s->bytes = bytes;
    s->stride = stride;
    s->guard_bytes = guard_bytes;
    s->head_bytes = head_bytes;
    s->count = count;
    s->size_class = size_class;
    // relaxed: slabs are made under the depot's lock, so no other thread writes the list.
    s->next = slab_list.load(base::relaxed);
    // sync(slab_list): publishes the header to readers without a lock, such as locate().
    slab_list.store(s, base::release);
    return s;
}

void release_all_slabs() noexcept {
    // sync(slab_list): sees the headers.
    slab* s = slab_list.exchange(nullptr, base::acquire);
    while (s != nullptr) {
        slab* next = s->next;
        os::unmap(s, s->bytes);
        s = next;
    }
}

bool locate(const void* address, located& found) noexcept {
    const auto* at = static_cast<const char*>(address);
    // sync(slab_list): sees the headers.
    for (slab* s = slab_list.load(base::acquire); s != nullptr; s = s->next) {
        if (at < s->stacks || at >= s->stacks + s->stride * s->count) continue;
        const auto offset = static_cast<std::size_t>(at - s->stacks);
        found.in = s;
        found.index = static_cast<std::uint32_t>(offset / s->stride);
        found.in_guard = offset % s->stride < s->guard_bytes;
        return true;
    }
    return false;
}

}  // namespace ums::mem
