// SPDX-License-Identifier: MIT
#include "capi/call.hpp"
#include "ums/shared_mutex.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

using calls = impl::shared_mutex_calls;
impl::shared_mutex_state& state(ums_rwlock_t* l) noexcept {
    return object<impl::shared_mutex_state>(l);
}

}  // namespace

int ums_rwlock_lock(ums_rwlock_t* l) {
    return call([l] { calls::lock(state(l)); });
}

int ums_rwlock_lock_until(ums_rwlock_t* l, int64_t deadline, ums_stop_t* stop) {
    return wait_until(deadline, stop, [l](ums::deadline limit, const std::stop_token* token) {
        return token == nullptr ? calls::lock_until(state(l), limit)
                                : calls::lock_or_stop(state(l), limit, *token);
    });
}

int ums_rwlock_trylock(ums_rwlock_t* l) { return calls::try_lock(state(l)) ? 0 : -EBUSY; }

int ums_rwlock_unlock(ums_rwlock_t* l) {
    if (!calls::is_writer(state(l))) return -EPERM;
    calls::unlock(state(l));
    return 0;
}

int ums_rwlock_lock_shared(ums_rwlock_t* l) {
    return call([l] { calls::lock_shared(state(l)); });
}

int ums_rwlock_lock_shared_until(ums_rwlock_t* l, int64_t deadline, ums_stop_t* stop) {
    return wait_until(deadline, stop, [l](ums::deadline limit, const std::stop_token* token) {
        return token == nullptr ? calls::lock_shared_until(state(l), limit)
                                : calls::lock_shared_or_stop(state(l), limit, *token);
    });
}

int ums_rwlock_trylock_shared(ums_rwlock_t* l) {
    return calls::try_lock_shared(state(l)) ? 0 : -EBUSY;
}

int ums_rwlock_unlock_shared(ums_rwlock_t* l) {
    if (!calls::is_read(state(l))) return -EPERM;
    calls::unlock_shared(state(l));
    return 0;
}
