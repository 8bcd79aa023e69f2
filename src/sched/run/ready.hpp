// SPDX-License-Identifier: MIT
#pragma once

// sched/run/ready.hpp: a fiber becomes ready: at the caller's processor if it may run there, else
// at its home, the cluster it belongs to.
//
// The caller owns the fiber, and has given it away when the call returns: another processor may
// run it then.
//
// Many fibers at once (all()): one processor is woken for them. If they are of several clusters, it
// is one processor of each; that one wakes the next when it has found work of its own and there is
// more (sched/run/search.hpp). Cost: for fibers of the caller's own cluster, one push each; for
// those of another cluster, one compare-and-swap for all of them under the default policy,
// otherwise the policy's ready() for each.

#include "sched/run/cluster.hpp"

namespace ums::sched {

struct ready {
    // May be called from anywhere. Wakes a processor there.
    static UMS_ALWAYS_INLINE void at_home(fiber& f) noexcept {
        f.home_cluster.get()->make_ready_from_outside(f);
    }

    // Call it inside `p`. Returns true if the fiber is now ready there; then no processor was
    // woken: p.wake_help() follows wherever the caller does not look for work itself.
    static UMS_ALWAYS_INLINE bool at(processor& p, fiber& f, processor::place where) noexcept {
        if (!p.may_run(f)) {
            at_home(f);
            return false;
        }
        p.make_ready(f, where);
        return true;
    }

    // The last thing inside `p`: leaves `section`, which is that ownership, and wakes a processor.
    // Outside, because a wake-up may be a system call. The fiber runs next.
    template <class Section>
    static UMS_ALWAYS_INLINE void and_leave(Section& section, processor& p, fiber& f) noexcept {
        if (!p.may_run(f)) {
            section.leave();
            return at_home(f);
        }
        p.make_ready(f, processor::place::next);
        section.leave();
        p.wake_help();
    }

    // Linked fibers, in the order in which they are to run. May be called from anywhere.
    static void all(fiber* list) noexcept;
};

}  // namespace ums::sched
