// SPDX-License-Identifier: MIT

// Thread-local slots. A value is valid for one use of its slot: TlsAlloc() counts the uses, so a
// slot that is used again is zero in every thread, and no thread touches another thread's values.

#include <new>

#include "windows/last_error.hpp"
#include "windows/thread.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

constexpr DWORD slot_count = 1088;  // As many as Windows has.

// An odd count means: in use.
std::atomic<std::uint32_t> slot_uses[slot_count];

}  // namespace

DWORD TlsAlloc() {
    for (DWORD i = 0; i < slot_count; ++i) {
        std::uint32_t use = slot_uses[i].load(compat::relaxed);  // relaxed: the exchange decides.
        // relaxed: the caller passes the index on in an ordered way.
        if ((use & 1) == 0 &&
            slot_uses[i].compare_exchange_strong(use, use + 1, compat::relaxed, compat::relaxed))
            return i;
    }
    SetLastError(ERROR_NO_MORE_ITEMS);
    return TLS_OUT_OF_INDEXES;
}

LPVOID TlsGetValue(DWORD index) {
    // relaxed: a caller that knows the index came after TlsAlloc().
    const std::uint32_t use = index < slot_count ? slot_uses[index].load(compat::relaxed) : 0;
    if ((use & 1) == 0) return fail(ERROR_INVALID_PARAMETER);
    SetLastError(NO_ERROR);
    const thread& self = thread::current();
    if (self.slots == nullptr || self.slots[index].use != use) return nullptr;
    return self.slots[index].value;
}

BOOL TlsSetValue(DWORD index, LPVOID value) {
    // relaxed: as above.
    const std::uint32_t use = index < slot_count ? slot_uses[index].load(compat::relaxed) : 0;
    if ((use & 1) == 0) return fail(ERROR_INVALID_PARAMETER);
    thread& self = thread::current();
    if (self.slots == nullptr) {
        const uninterrupted section;
        self.slots.reset(new (std::nothrow) slot_value[slot_count]);
        if (self.slots == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    self.slots[index] = {use, value};
    return TRUE;
}

BOOL TlsFree(DWORD index) {
    // relaxed: as above.
    std::uint32_t use = index < slot_count ? slot_uses[index].load(compat::relaxed) : 0;
    if ((use & 1) == 0 ||
        // relaxed.
        !slot_uses[index].compare_exchange_strong(use, use + 1, compat::relaxed, compat::relaxed))
        return fail(ERROR_INVALID_PARAMETER);
    return TRUE;
}
