// SPDX-License-Identifier: MIT
#include "base/assert.hpp"
#include "capi/call.hpp"
#include "ums/condition_variable.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

using calls = impl::condition_calls;

impl::condition_state& state(ums_cond_t* c) noexcept { return object<impl::condition_state>(c); }

void unlock(void* m) {
    [[maybe_unused]] const int error = ums_mutex_unlock(static_cast<ums_mutex_t*>(m));
    UMS_DEBUG_ASSERT(error == 0, "a wait let go of a mutex that its caller does not hold");
}

}  // namespace

int ums_cond_wait(ums_cond_t* c, ums_mutex_t* m) {
    return ums_cond_wait_until(c, m, UMS_NEVER, nullptr);
}

int ums_cond_wait_until(ums_cond_t* c, ums_mutex_t* m, int64_t deadline, ums_stop_t* stop) {
    if (!impl::is_held_by_caller(object<impl::mutex_state>(m))) return -EPERM;
    return wait_until(deadline, stop, [c, m](ums::deadline limit, const std::stop_token* token) {
        const bool notified = calls::wait(state(c), impl::foreign_lock{m, &unlock}, limit, token);
        // The condition variable may be gone. The caller held the mutex before, so it can hold it
        // again.
        [[maybe_unused]] const int error = ums_mutex_lock(m);
        UMS_DEBUG_ASSERT(error == 0, "a wait returns without the mutex");
        return notified;
    });
}

void ums_cond_notify_one(ums_cond_t* c) { calls::notify_one(state(c)); }
void ums_cond_notify_all(ums_cond_t* c) { calls::notify_all(state(c)); }
