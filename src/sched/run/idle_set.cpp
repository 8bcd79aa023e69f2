// SPDX-License-Identifier: MIT
#include "sched/run/idle_set.hpp"

#include "base/assert.hpp"
#include "base/chain.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

void idle_set::join(processor& p) noexcept {
    os::lock_guard guard{lock_};
    UMS_ASSERT(!p.is_idle.get(), "a processor joins the idle set twice");
    base::chain::push_front(first_, p, &processor::next_idle);
    p.is_idle.set(true);
    // seq_cst: one step from searching to idle; see the header.
    word_.fetch_add(1 - one_searching, base::seq_cst);
}

bool idle_set::quit(processor& p) noexcept {
    os::lock_guard guard{lock_};
    if (!p.is_idle.get()) return false;
    take_out(p);
    return true;
}

processor* idle_set::claim_any(bool even_if_searching, const processor* except) noexcept {
    os::lock_guard guard{lock_};
    processor* p = first_;
    if (p != nullptr && p == except) p = p->next_idle;
    if (p == nullptr) return nullptr;
    if (!even_if_searching && look().searching != 0) return nullptr;
    take_out(*p);
    return p;
}

bool idle_set::claim(processor& p) noexcept { return quit(p); }

void idle_set::take_out(processor& p) noexcept {
    UMS_ASSERT(p.is_idle.get(), "a processor leaves the idle set that is not in it");
    base::chain::remove(first_, p, &processor::next_idle);
    p.is_idle.set(false);
    word_.fetch_add(one_searching - 1, base::seq_cst);
}

}  // namespace ums::sched
