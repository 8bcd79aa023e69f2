// SPDX-License-Identifier: MIT

// One-time initialisation: 0 not done, 1 under way, 2 under way and a thread may wait, 3 done. A
// waiter sets 2, or finds it, while the initialisation is under way; the thread that ends it
// exchanges the state, and wakes the waiters if it was 2.

#include "base/check.hpp"
#include "windows/last_error.hpp"
#include "windows/word.hpp"

using namespace ums;
using namespace ums::windows;

namespace {
constexpr std::uint32_t is_new = 0, is_under_way = 1, has_waiters = 2, is_done = 3;
}

VOID InitOnceInitialize(PINIT_ONCE once) { *once = {}; }

BOOL InitOnceExecuteOnce(PINIT_ONCE once, PINIT_ONCE_FN function, PVOID parameter,
                         LPVOID* context) {
    word state{once->State};
    for (;;) {
        // sync(windows.once): sees what the function did.
        std::uint32_t seen = state.load(compat::acquire);
        if (seen == is_done) break;
        if (seen == is_new) {
            // sync(windows.once): sees what a failed attempt did.
            if (!state.compare_exchange_strong(seen, is_under_way, compat::acquire,
                                               compat::relaxed))
                continue;
            const bool is_right = function(once, parameter, &once->Context) != FALSE;
            // sync(windows.once): publishes what the function did.
            const std::uint32_t was = state.exchange(is_right ? is_done : is_new, compat::release);
            UMS_DEBUG_CHECK(was == is_under_way || was == has_waiters,
                            "a one-time initialisation ended twice");
            if (was == has_waiters) wake_all(once->State);
            if (!is_right) return FALSE;
            break;
        }
        // relaxed: the state is read again after the wait.
        if (seen == has_waiters ||
            state.compare_exchange_strong(seen, has_waiters, compat::relaxed, compat::relaxed))
            wait_while(once->State, has_waiters);
    }
    if (context != nullptr) *context = once->Context;
    return TRUE;
}
