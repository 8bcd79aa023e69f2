// SPDX-License-Identifier: MIT
#pragma once

// sync/lock_order.hpp: debug builds warn when two mutexes, shared ones too, are locked in both
// orders.
//
// Each lock() without limit, by a caller that holds other mutexes, leaves an edge "held, then
// locked" for each of them. A caller that later locks a pair the other way round gets a warning,
// once for each pair, although it went well this time. try_lock() and the timed and stop-aware
// forms leave no edge, because they do not wait for ever; but what they got counts as held. A
// shared lock counts like any other: two readers that lock a pair in both orders deadlock as soon
// as a writer waits for each.
//
// A mutex is known by a number, which it gets when it is first locked and keeps in its own spare
// word. A new mutex in the same place has no number, so the edges of a mutex that is gone concern
// no other. So nothing must be forgotten when a mutex is destroyed, and it has no destructor. The
// table is bounded; when it is full, new edges overwrite old ones, and a warning may be missed.
//
// Two things are not seen: cycles of three and more mutexes that no two fibers close as a pair, and
// that two orders exclude each other because a third mutex is always held. The latter causes a
// warning.
//
// Cost: nothing in release builds. In debug builds a short section under one lock for each mutex
// held.

#include "ums/impl/wait_list.hpp"

namespace ums::sync {

#if defined(UMS_DEBUG)
void check_lock_order(bool on) noexcept;
// `lock`: what its user knows it by; `list` has the spare word.
void before_lock(const void* lock, impl::wait_list& list) noexcept;
void after_lock(const void* lock, impl::wait_list& list) noexcept;
void before_unlock(impl::wait_list& list) noexcept;
#else
inline void check_lock_order(bool) noexcept {}
inline void before_lock(const void*, impl::wait_list&) noexcept {}
inline void after_lock(const void*, impl::wait_list&) noexcept {}
inline void before_unlock(impl::wait_list&) noexcept {}
#endif

// For a mutex_state or a shared_mutex_state.
template <class State>
void before_lock(State& m) noexcept {
    before_lock(&m, m.waiters);
}
template <class State>
void after_lock(State& m) noexcept {
    after_lock(&m, m.waiters);
}
template <class State>
void before_unlock(State& m) noexcept {
    before_unlock(m.waiters);
}

}  // namespace ums::sync
