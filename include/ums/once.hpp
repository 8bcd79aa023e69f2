// SPDX-License-Identifier: MIT
#pragma once

// ums/once.hpp: a call that is made once, by the first caller to come. Same API as std's.
//
// Blocking:  call_once() parks the fiber, never its processor, while another caller makes the call;
//            a plain kernel thread waits on a futex. Not from a signal handler.
// Fairness:  if the call throws, the longest waiter makes the next attempt.
// Ordering:  what the successful call did is visible after each call_once() of that flag.
// Lifetime:  a flag of static storage needs no initialisation at run time. A flag may be destroyed
//            once a call_once() has returned and no other is in progress but that of the fiber that
//            made the call.
// Errors:    an exception of the call leaves the flag unset and goes to the caller that made the
//            call. A call that calls call_once() on its own flag waits for ever.
// Cost:      one load once the call has been made.

#include <cstdint>
#include <functional>
#include <utility>

#include "ums/export.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums {

namespace impl {

struct once_state {
    // Must be zero at first. See src/sync/once.cpp.
    std::uint32_t word = 0;
    wait_list waiters;

    static constexpr std::uint32_t done = 4;

    [[nodiscard]] bool is_done() const noexcept {
        // sync(once): sees what the call did.
        return __atomic_load_n(&word, __ATOMIC_ACQUIRE) == done;
    }
};

struct once_calls {
    // True: the caller must make the call, and then call end().
    UMS_EXPORT static bool begin(once_state& o) noexcept;
    UMS_EXPORT static void end(once_state& o, bool is_done) noexcept;
};

}  // namespace impl

class once_flag {
public:
    constexpr once_flag() noexcept = default;
    once_flag(const once_flag&) = delete;
    once_flag& operator=(const once_flag&) = delete;

private:
    template <class F, class... Args>
    friend void call_once(once_flag& flag, F&& f, Args&&... args);

    impl::once_state state_;
};

// Calls f(args...), unless such a call with this flag has already returned; waits while one is in
// progress.
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
    if (flag.state_.is_done()) [[likely]]
        return;
    if (!impl::once_calls::begin(flag.state_)) return;
    struct attempt {
        impl::once_state& state;
        bool is_done = false;
        ~attempt() { impl::once_calls::end(state, is_done); }
    } here{flag.state_};
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    here.is_done = true;
}

}  // namespace ums
