// SPDX-License-Identifier: MIT
#include "ums/semaphore.hpp"

#include <new>

#include "base/atomic.hpp"
#include "capi/call.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

using calls = impl::semaphore_calls;
using impl::semaphore_state;

constexpr std::ptrdiff_t most = std::numeric_limits<std::ptrdiff_t>::max();

semaphore_state& state(ums_semaphore_t* s) noexcept { return object<semaphore_state>(s); }

}  // namespace

int ums_semaphore_init(ums_semaphore_t* s, uint32_t permits) {
    if (permits > UMS_SEMAPHORE_MAX) return -EINVAL;
    *s = ums_semaphore_t UMS_SEMAPHORE_INIT;
    new (&state(s)) semaphore_state{static_cast<std::ptrdiff_t>(permits), most};
    return 0;
}

void ums_semaphore_acquire(ums_semaphore_t* s) { calls::acquire(state(s)); }

int ums_semaphore_acquire_until(ums_semaphore_t* s, int64_t deadline, ums_stop_t* stop) {
    return wait_until(deadline, stop, [s](ums::deadline limit, const std::stop_token* token) {
        return token == nullptr ? calls::acquire_until(state(s), limit)
                                : calls::acquire_or_stop(state(s), *token, limit);
    });
}

int ums_semaphore_tryacquire(ums_semaphore_t* s) {
    return calls::try_acquire(state(s)) ? 0 : -EAGAIN;
}

int ums_semaphore_release(ums_semaphore_t* s, uint32_t permits) {
    // Releases at the same time may exceed the maximum together; the mechanism's own maximum is
    // much higher.
    const std::uint64_t sum = std::uint64_t{ums_semaphore_value(s)} + permits;
    if (sum > UMS_SEMAPHORE_MAX) return -EOVERFLOW;
    calls::release(state(s), static_cast<std::ptrdiff_t>(permits), most);
    return 0;
}

uint32_t ums_semaphore_value(const ums_semaphore_t* s) {
    const std::ptrdiff_t free = calls::permits(object<const semaphore_state>(s));
    return static_cast<uint32_t>(std::min<std::ptrdiff_t>(free, UMS_SEMAPHORE_MAX));
}
