// SPDX-License-Identifier: MIT

// A slim reader-writer lock in one word, which says how many readers hold it, or that a writer
// does, and whether any thread waits. New readers queue behind waiters, so that readers that
// overlap for ever do not keep a writer out. A waiter sets the waiters' bit, by compare-and-swap,
// only while the lock is held, and sleeps only while the word is as it left it. The release that
// frees the lock clears the bit in the same step and wakes all sleepers, which try again: so no
// thread sleeps on a free lock.

#include "base/check.hpp"
#include "windows/last_error.hpp"
#include "windows/word.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

constexpr std::uint32_t writer = 1u << 31, waiters = 1u << 30;

// What the word becomes when the caller takes the lock, or 0 if it must wait.
std::uint32_t taken(std::uint32_t state, bool shared) noexcept {
    if (!shared) return state == 0 ? writer : 0;
    return (state & (writer | waiters)) == 0 ? state + 1 : 0;
}

bool take(SRWLOCK& lock, bool shared, bool waits) noexcept {
    word state{lock.State};
    std::uint32_t seen = state.load(compat::relaxed);  // relaxed: the exchange decides.
    for (;;) {
        const std::uint32_t mine = taken(seen, shared);
        if (mine != 0) {
            // sync(windows.srw): sees what the last holders did.
            if (state.compare_exchange_strong(seen, mine, compat::acquire, compat::relaxed))
                return true;
            continue;
        }
        if (!waits) return false;
        // relaxed: the word is read again after the wait.
        if ((seen & waiters) != 0 ||
            state.compare_exchange_strong(seen, seen | waiters, compat::relaxed, compat::relaxed)) {
            wait_while(lock.State, seen | waiters);
            seen = state.load(compat::relaxed);  // relaxed: as above.
        }
    }
}

void free_lock(SRWLOCK& lock, std::uint32_t left) noexcept {
    if ((left & waiters) != 0) wake_all(lock.State);
}

}  // namespace

VOID InitializeSRWLock(PSRWLOCK lock) { *lock = {}; }
VOID AcquireSRWLockExclusive(PSRWLOCK lock) { (void)take(*lock, false, true); }
VOID AcquireSRWLockShared(PSRWLOCK lock) { (void)take(*lock, true, true); }
BOOLEAN TryAcquireSRWLockExclusive(PSRWLOCK lock) { return take(*lock, false, false) ? 1 : 0; }
BOOLEAN TryAcquireSRWLockShared(PSRWLOCK lock) { return take(*lock, true, false) ? 1 : 0; }

VOID ReleaseSRWLockExclusive(PSRWLOCK lock) {
    // sync(windows.srw): publishes the section to the next holders.
    const std::uint32_t was = word{lock->State}.exchange(0, compat::release);
    UMS_DEBUG_CHECK((was & ~waiters) == writer, "a writer released an SRW lock that none holds");
    free_lock(*lock, was);
}

VOID ReleaseSRWLockShared(PSRWLOCK lock) {
    word state{lock->State};
    std::uint32_t seen = state.load(compat::relaxed);  // relaxed: the exchange decides.
    for (;;) {
        UMS_DEBUG_CHECK((seen & writer) == 0 && (seen & ~waiters) != 0,
                        "a reader released an SRW lock that no reader holds");
        const bool is_last = (seen & ~waiters) == 1;
        // sync(windows.srw): what readers did comes before the next writer. It is an acquire too,
        // so that the last reader's release covers the other readers'.
        if (state.compare_exchange_strong(seen, is_last ? 0 : seen - 1, compat::acq_rel,
                                          compat::relaxed)) {
            if (is_last) free_lock(*lock, seen);
            return;
        }
    }
}
