// SPDX-License-Identifier: MIT

// A critical section: 0 free, 1 held, 2 held and a thread may wait. A waiter sets 2 while the
// section is held, and takes it with 2, so that the release after a wait wakes the next: no waiter
// is forgotten.

#include "base/check.hpp"
#include "windows/thread.hpp"
#include "windows/word.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

constexpr std::uint32_t is_free = 0, is_held = 1, has_waiters = 2;

bool try_take(word& state) noexcept {
    std::uint32_t expected = is_free;
    // sync(windows.section): sees what the last owner did.
    return state.compare_exchange_strong(expected, is_held, compat::acquire, compat::relaxed);
}

// relaxed: only the owner writes its own id, so a thread that reads its own id is the owner.
bool is_owner(CRITICAL_SECTION& s, DWORD id) noexcept {
    return word{s.OwningThreadId}.load(compat::relaxed) == id;
}

void own(CRITICAL_SECTION& s, DWORD id) noexcept {
    word{s.OwningThreadId}.store(id, compat::relaxed);  // relaxed: see is_owner().
    s.RecursionCount = 1;
}

}  // namespace

VOID InitializeCriticalSection(LPCRITICAL_SECTION section) { *section = {}; }
BOOL InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION section, DWORD spins) {
    *section = {};
    section->SpinCount = spins;
    return TRUE;
}
BOOL InitializeCriticalSectionEx(LPCRITICAL_SECTION section, DWORD spins, DWORD) {
    return InitializeCriticalSectionAndSpinCount(section, spins);
}
DWORD SetCriticalSectionSpinCount(LPCRITICAL_SECTION section, DWORD spins) {
    // relaxed: a hint.
    return word{section->SpinCount}.exchange(spins, compat::relaxed);
}
VOID DeleteCriticalSection(LPCRITICAL_SECTION section) { *section = {}; }

VOID EnterCriticalSection(LPCRITICAL_SECTION section) {
    const DWORD id = GetCurrentThreadId();
    if (is_owner(*section, id)) {
        ++section->RecursionCount;
        return;
    }
    word state{section->State};
    if (!try_take(state)) {
        constexpr ULONG most = 4000;  // As if the program had asked for no more.
        const ULONG spins = word{section->SpinCount}.load(compat::relaxed);  // relaxed: a hint.
        bool is_taken = false;
        for (ULONG i = 0; i < spins && i < most && !is_taken; ++i) {
            compat::spin_pause();
            // relaxed: try_take() decides.
            is_taken = state.load(compat::relaxed) == is_free && try_take(state);
        }
        // sync(windows.section): as try_take().
        while (!is_taken && state.exchange(has_waiters, compat::acquire) != is_free)
            wait_while(section->State, has_waiters);
    }
    own(*section, id);
}

BOOL TryEnterCriticalSection(LPCRITICAL_SECTION section) {
    const DWORD id = GetCurrentThreadId();
    if (is_owner(*section, id)) {
        ++section->RecursionCount;
        return TRUE;
    }
    word state{section->State};
    if (!try_take(state)) return FALSE;
    own(*section, id);
    return TRUE;
}

VOID LeaveCriticalSection(LPCRITICAL_SECTION section) {
    UMS_DEBUG_CHECK(is_owner(*section, GetCurrentThreadId()) && section->RecursionCount > 0,
                    "LeaveCriticalSection() by a thread that is not inside");
    if (--section->RecursionCount > 0) return;
    word{section->OwningThreadId}.store(0, compat::relaxed);  // relaxed: see is_owner().
    // sync(windows.section): publishes the section to the next owner.
    if (word{section->State}.exchange(is_free, compat::release) == has_waiters)
        wake_one(section->State);
}
