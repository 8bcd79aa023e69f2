// SPDX-License-Identifier: MIT
#include "ums/event.hpp"

#include <new>

#include "base/assert.hpp"
#include "capi/call.hpp"
#include "capi/gate.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

using gate = impl::gate_calls;
using semaphore = impl::semaphore_calls;

bool is_manual(const ums_event_t* e) noexcept {
    UMS_DEBUG_ASSERT(e->kind <= UMS_EVENT_MANUAL, "an event was never initialised");
    return e->kind == UMS_EVENT_MANUAL;
}
impl::semaphore_state& semaphore_of(ums_event_t* e) noexcept {
    return object<impl::semaphore_state>(e);
}

}  // namespace

int ums_event_init(ums_event_t* e, ums_event_kind_t kind, bool is_set) {
    if (!is_kind(kind, UMS_EVENT_MANUAL)) return -EINVAL;
    *e = ums_event_t{{}, static_cast<std::uint32_t>(kind), 0};
    if (is_manual(e))
        new (&gate_of(e)) impl::gate_state{is_set ? 0 : 1};
    else
        new (&semaphore_of(e)) impl::semaphore_state{is_set ? 1 : 0, 1};
    return 0;
}

void ums_event_set(ums_event_t* e) {
    if (is_manual(e))
        gate::open(gate_of(e));
    else
        semaphore::release_if_none(semaphore_of(e));
}

void ums_event_reset(ums_event_t* e) {
    if (is_manual(e))
        gate::close(gate_of(e));
    else
        (void)semaphore::try_acquire(semaphore_of(e));
}

int ums_event_trywait(ums_event_t* e) {
    const bool is =
        is_manual(e) ? gate::is_open(gate_of(e)) : semaphore::try_acquire(semaphore_of(e));
    return is ? 0 : -EAGAIN;
}

void ums_event_wait(ums_event_t* e) {
    if (is_manual(e))
        gate::wait(gate_of(e));
    else
        semaphore::acquire(semaphore_of(e));
}

int ums_event_wait_until(ums_event_t* e, int64_t deadline, ums_stop_t* stop) {
    if (is_manual(e)) return wait_at_gate(gate_of(e), deadline, stop);
    return wait_until(deadline, stop, [e](ums::deadline limit, const std::stop_token* token) {
        return token == nullptr ? semaphore::acquire_until(semaphore_of(e), limit)
                                : semaphore::acquire_or_stop(semaphore_of(e), *token, limit);
    });
}
