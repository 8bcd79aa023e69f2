// SPDX-License-Identifier: MIT

// A ums_mutex_t holds what the C++ mutexes hold, a mutex_state, and its kind.

#include "ums/mutex.hpp"

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "capi/call.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

using impl::mutex_state;
using barging = impl::mutex_calls<impl::handover::barging>;
using fair = impl::mutex_calls<impl::handover::fair>;
using recursive = impl::recursive_calls;

static_assert(sizeof(mutex_state) <= sizeof(ums_mutex_t::words));

mutex_state& state(ums_mutex_t* m) noexcept {
    UMS_DEBUG_ASSERT(m->kind <= UMS_MUTEX_RECURSIVE, "a mutex was never initialised");
    return object<mutex_state>(m);
}

}  // namespace

int ums_mutex_init(ums_mutex_t* m, ums_mutex_kind_t kind) {
    if (!is_kind(kind, UMS_MUTEX_RECURSIVE)) return -EINVAL;
    *m = ums_mutex_t{{}, static_cast<std::uint32_t>(kind), 0};
    return 0;
}

int ums_mutex_destroy(ums_mutex_t* m) {
    // relaxed: the answer may be out of date as soon as it is given.
    return base::atomic_ref<std::uintptr_t>{state(m).owner}.load(base::relaxed) == 0 ? 0 : -EBUSY;
}

int ums_mutex_lock(ums_mutex_t* m) {
    return call([m] {
        switch (m->kind) {
            case UMS_MUTEX_FAIR:
                return fair::lock(state(m));
            case UMS_MUTEX_RECURSIVE:
                return recursive::lock(state(m));
            default:
                return barging::lock(state(m));
        }
    });
}

int ums_mutex_lock_until(ums_mutex_t* m, int64_t deadline, ums_stop_t* stop) {
    return wait_until(deadline, stop, [m](ums::deadline limit, const std::stop_token* token) {
        if (token == nullptr) {
            switch (m->kind) {
                case UMS_MUTEX_FAIR:
                    return fair::lock_until(state(m), limit);
                case UMS_MUTEX_RECURSIVE:
                    // This is the form that throws if the mutex is locked too often.
                    return recursive::lock_or_stop(state(m), limit, std::stop_token{});
                default:
                    return barging::lock_until(state(m), limit);
            }
        }
        switch (m->kind) {
            case UMS_MUTEX_FAIR:
                return fair::lock_or_stop(state(m), limit, *token);
            case UMS_MUTEX_RECURSIVE:
                return recursive::lock_or_stop(state(m), limit, *token);
            default:
                return barging::lock_or_stop(state(m), limit, *token);
        }
    });
}

int ums_mutex_trylock(ums_mutex_t* m) {
    switch (m->kind) {
        case UMS_MUTEX_FAIR:
            return fair::try_lock(state(m)) ? 0 : -EBUSY;
        case UMS_MUTEX_RECURSIVE:
            return recursive::try_lock(state(m)) ? 0 : -EBUSY;
        default:
            return barging::try_lock(state(m)) ? 0 : -EBUSY;
    }
}

int ums_mutex_unlock(ums_mutex_t* m) {
    if (!impl::is_held_by_caller(state(m))) return -EPERM;
    switch (m->kind) {
        case UMS_MUTEX_FAIR:
            fair::unlock(state(m));
            break;
        case UMS_MUTEX_RECURSIVE:
            recursive::unlock(state(m));
            break;
        default:
            barging::unlock(state(m));
    }
    return 0;
}
