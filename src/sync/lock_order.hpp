// SPDX-License-Identifier: MIT
#pragma once

// sync/lock_order.hpp: debug builds warn when two mutexes are locked in both orders.
//
// Each lock() without limit, by someone who holds other mutexes, leaves an edge "held, then locked"
// for each of them. Who then locks a pair the other way round is told, once for each pair, although
// it went well this time. try_lock() and the timed and stop-aware forms leave no edge, for they do
// not wait for ever; but what they got is held.
//
// A mutex is known by a number, which it gets when it first takes part in an edge and keeps in its
// own spare word. A new mutex in the same place has none, so the edges of one that is gone concern
// nobody: nothing must be forgotten when it is destroyed, and it has no destructor. The table is
// bounded; when it is full, new edges overwrite old ones, and a warning may be missed.
//
// Not seen: cycles of three and more mutexes that no two fibers close as a pair; and that two
// orders exclude each other because a third mutex is always held is not seen either: that is warned
// of.
//
// Cost: release builds nothing. Debug builds a short section under one lock for each mutex held.

#include "ums/mutex.hpp"

namespace ums::sync {

#if defined(UMS_DEBUG)
void check_lock_order(bool on) noexcept;
void before_lock(impl::mutex_state& m) noexcept;
void after_lock(impl::mutex_state& m) noexcept;
void before_unlock(impl::mutex_state& m) noexcept;
#else
inline void check_lock_order(bool) noexcept {}
inline void before_lock(impl::mutex_state&) noexcept {}
inline void after_lock(impl::mutex_state&) noexcept {}
inline void before_unlock(impl::mutex_state&) noexcept {}
#endif

}  // namespace ums::sync
