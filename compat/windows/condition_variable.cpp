// SPDX-License-Identifier: MIT

// A condition variable: an epoch that every wake-up advances, and the number of sleepers. A sleeper
// counts itself and reads the epoch while it holds the lock, and sleeps only while the epoch is
// what it read. A wake-up after the sleeper released the lock advances the epoch, so the sleeper
// does not fall asleep, or is woken. A thread that changes the condition with the lock held either
// does so before the sleeper looked at the condition, or after the sleeper was counted, and then it
// sees the count.

#include "base/check.hpp"
#include "windows/last_error.hpp"
#include "windows/object.hpp"
#include "windows/word.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

template <class Release, class Acquire>
BOOL sleep(CONDITION_VARIABLE& variable, DWORD milliseconds, Release release,
           Acquire acquire) noexcept {
    const compat::nanoseconds limit = deadline_of(milliseconds);
    // relaxed: published by the release of the lock.
    word{variable.Sleepers}.fetch_add(1, compat::relaxed);
    const std::uint32_t epoch = word{variable.Epoch}.load(compat::relaxed);
    release();
    bool is_late = false;
    // relaxed: what the waker did is seen by way of the lock.
    while (!is_late && word{variable.Epoch}.load(compat::relaxed) == epoch)
        is_late = !wait_while(variable.Epoch, epoch, limit);
    // relaxed: a hint from here on.
    [[maybe_unused]] const auto were = word{variable.Sleepers}.fetch_sub(1, compat::relaxed);
    UMS_DEBUG_CHECK(were != 0, "a condition variable was initialised anew while a thread slept");
    acquire();
    return is_late ? BOOL{fail(ERROR_TIMEOUT)} : TRUE;
}

void wake(CONDITION_VARIABLE& variable, bool all) noexcept {
    // relaxed: the lock orders it after the sleeper's count; see above.
    if (word{variable.Sleepers}.load(compat::relaxed) == 0) return;
    word{variable.Epoch}.fetch_add(1, compat::relaxed);  // relaxed: as above.
    all ? wake_all(variable.Epoch) : wake_one(variable.Epoch);
}

}  // namespace

VOID InitializeConditionVariable(PCONDITION_VARIABLE variable) { *variable = {}; }

BOOL SleepConditionVariableCS(PCONDITION_VARIABLE variable, PCRITICAL_SECTION section,
                              DWORD milliseconds) {
    return sleep(
        *variable, milliseconds, [&] { LeaveCriticalSection(section); },
        [&] { EnterCriticalSection(section); });
}

BOOL SleepConditionVariableSRW(PCONDITION_VARIABLE variable, PSRWLOCK lock, DWORD milliseconds,
                               ULONG flags) {
    const bool shared = (flags & CONDITION_VARIABLE_LOCKMODE_SHARED) != 0;
    return sleep(
        *variable, milliseconds,
        [&] { shared ? ReleaseSRWLockShared(lock) : ReleaseSRWLockExclusive(lock); },
        [&] { shared ? AcquireSRWLockShared(lock) : AcquireSRWLockExclusive(lock); });
}

VOID WakeConditionVariable(PCONDITION_VARIABLE variable) { wake(*variable, false); }
VOID WakeAllConditionVariable(PCONDITION_VARIABLE variable) { wake(*variable, true); }
