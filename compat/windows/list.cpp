// SPDX-License-Identifier: MIT

// Interlocked singly linked lists, each behind a lock of one word, so popping need not care about
// an entry that comes back.

#include "base/check.hpp"
#include "ums/compat/windows/windows.h"
#include "windows/guard.hpp"

using namespace ums;
using namespace ums::windows;

VOID InitializeSListHead(PSLIST_HEADER head) { *head = {}; }

PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER head, PSLIST_ENTRY entry) {
    const guard hold{head->State};
    entry->Next = head->First;
    head->First = entry;
    ++head->Depth;
    return entry->Next;
}

PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER head) {
    const guard hold{head->State};
    const PSLIST_ENTRY first = head->First;
    UMS_DEBUG_CHECK((first == nullptr) == (head->Depth == 0), "a list miscounts its entries");
    if (first != nullptr) {
        head->First = first->Next;
        --head->Depth;
    }
    return first;
}

PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER head) {
    const guard hold{head->State};
    const PSLIST_ENTRY first = head->First;
    head->First = nullptr;
    head->Depth = 0;
    return first;
}

USHORT QueryDepthSList(PSLIST_HEADER head) {
    const guard hold{head->State};
    return static_cast<USHORT>(head->Depth);
}
