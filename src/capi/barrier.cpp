// SPDX-License-Identifier: MIT
#include "ums/barrier.hpp"

#include <new>

#include "capi/call.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

using calls = impl::barrier_calls;
static_assert(sizeof(impl::barrier_state) <= sizeof(ums_barrier_t::words));

impl::barrier_state& state(ums_barrier_t* b) noexcept { return object<impl::barrier_state>(b); }

void complete(ums_barrier_t* b) {
    if (b->completion != nullptr) b->completion(b->argument);
    calls::complete(state(b));
}

}  // namespace

int ums_barrier_init(ums_barrier_t* b, ptrdiff_t expected, void (*completion)(void*),
                     void* argument) {
    if (expected < 0) return -EINVAL;
    *b = ums_barrier_t{{}, completion, argument};
    new (&state(b)) impl::barrier_state{expected};
    return 0;
}

void ums_barrier_arrive_and_wait(ums_barrier_t* b, bool* was_last) {
    const bool is_last = !calls::arrive_and_wait(state(b));
    if (is_last) complete(b);
    if (was_last != nullptr) *was_last = is_last;
}

int ums_barrier_arrive(ums_barrier_t* b, ptrdiff_t n, uint64_t* phase) {
    if (n < 1) return -EINVAL;
    const calls::arrival a = calls::arrive(state(b), n, false);
    if (a.is_last) complete(b);
    if (phase != nullptr) *phase = a.phase;
    return 0;
}

void ums_barrier_arrive_and_drop(ums_barrier_t* b) {
    if (calls::arrive(state(b), 1, true).is_last) complete(b);
}

int ums_barrier_wait_until(ums_barrier_t* b, uint64_t phase, int64_t deadline, ums_stop_t* stop) {
    return wait_until(deadline, stop,
                      [b, phase](ums::deadline limit, const std::stop_token* token) {
                          return calls::wait(state(b), phase, limit, token);
                      });
}
