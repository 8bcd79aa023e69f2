// SPDX-License-Identifier: MIT

// Latches and wait groups: both are a gate.

#include "ums/impl/gate.hpp"

#include <new>

#include "capi/call.hpp"
#include "capi/gate.hpp"

using namespace ums;
using namespace ums::capi;

using calls = impl::gate_calls;

int ums_latch_init(ums_latch_t* l, ptrdiff_t count) {
    if (count < 0) return -EINVAL;
    *l = ums_latch_t{};
    new (&gate_of(l)) impl::gate_state{count};
    return 0;
}

int ums_latch_count_down(ums_latch_t* l, ptrdiff_t n) {
    if (n < 0) return -EINVAL;
    calls::count_down(gate_of(l), n);
    return 0;
}

int ums_latch_trywait(const ums_latch_t* l) { return calls::is_open(gate_of(l)) ? 0 : -EAGAIN; }
void ums_latch_wait(ums_latch_t* l) { calls::wait(gate_of(l)); }

int ums_latch_wait_until(ums_latch_t* l, int64_t deadline, ums_stop_t* stop) {
    return wait_at_gate(gate_of(l), deadline, stop);
}

int ums_latch_arrive_and_wait(ums_latch_t* l, ptrdiff_t n) {
    if (n < 0) return -EINVAL;
    calls::count_down(gate_of(l), n);
    calls::wait(gate_of(l));
    return 0;
}

void ums_wait_group_add(ums_wait_group_t* g, ptrdiff_t n) { calls::add(gate_of(g), n); }
void ums_wait_group_done(ums_wait_group_t* g) { calls::count_down(gate_of(g), 1); }
int ums_wait_group_trywait(const ums_wait_group_t* g) {
    return calls::is_open(gate_of(g)) ? 0 : -EAGAIN;
}
void ums_wait_group_wait(ums_wait_group_t* g) { calls::wait(gate_of(g)); }

int ums_wait_group_wait_until(ums_wait_group_t* g, int64_t deadline, ums_stop_t* stop) {
    return wait_at_gate(gate_of(g), deadline, stop);
}
