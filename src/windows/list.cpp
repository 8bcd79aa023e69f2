// SPDX-License-Identifier: MIT

// Interlocked singly linked lists, behind a lock of one word each: what pops needs no care for an entry that comes back.

#include "os/lock.hpp"
#include "ums/compat/windows/windows.h"
#include "windows/guard.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

class locked {
public:
    explicit locked(SLIST_HEADER& head) noexcept : state_{head.State} {
        base::atomic_ref<std::uint32_t> word{state_};
        os::lock_states::acquire(word, &state_);
    }
    ~locked() {
        base::atomic_ref<std::uint32_t> word{state_};
        os::lock_states::release(word, &state_);
    }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;

private:
    uninterrupted section_;
    std::uint32_t& state_;
};

}  // namespace

VOID InitializeSListHead(PSLIST_HEADER head) { *head = {}; }

PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER head, PSLIST_ENTRY entry) {
    const locked hold{*head};
    entry->Next = head->First;
    head->First = entry;
    ++head->Depth;
    return entry->Next;
}

PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER head) {
    const locked hold{*head};
    const PSLIST_ENTRY first = head->First;
    if (first != nullptr) {
        head->First = first->Next;
        --head->Depth;
    }
    return first;
}

PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER head) {
    const locked hold{*head};
    const PSLIST_ENTRY first = head->First;
    head->First = nullptr;
    head->Depth = 0;
    return first;
}

USHORT QueryDepthSList(PSLIST_HEADER head) {
    const locked hold{*head};
    return static_cast<USHORT>(head->Depth);
}
