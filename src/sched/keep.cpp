// SPDX-License-Identifier: MIT
#include "sched/keep.hpp"

#include <cerrno>
#include <system_error>

#include "arch/exception_state.hpp"
#include "base/assert.hpp"
#include "os/errno.hpp"
#include "sched/carrier_pool.hpp"
#include "sched/cluster.hpp"
#include "sched/here.hpp"
#include "ums/keep_carrier.hpp"

namespace ums::sched {

namespace {

// Nobody writes it.
constinit arch::exception_state always_active{nullptr, 1};

// The two actions run on a loop's stack, inside the processor that the loop then gives to `other`
// (carrier::run_fibers()). Their carrier stands by before that, because it may get one at once.

void finish_leaving(const after_switch& h, carrier& kept) noexcept {
    kept.gives_to.set(static_cast<carrier*>(h.other));
    kept.stand_by();
}

void finish_return(const after_switch& h, carrier& by) noexcept {
    auto& kept = *static_cast<carrier*>(h.other);
    UMS_ASSERT(kept.relief.get() == nullptr, "a carrier gets a second relief");
    kept.relief.set(&by);
    kept.runs_first.set(h.self);
    by.gives_to.set(&kept);
    by.stand_by();
}

// Both inside if it has a processor: a detector may be at work on the carrier.
void begin(fiber& self, carrier& kept, carrier& relief) noexcept {
    const bool is_inside = kept.enter() != nullptr;
    kept.relief.set(&relief);
    kept.is_kept.set(true);
    kept.exceptions = &always_active;
    if (is_inside) kept.leave(self.race);
}

void finish(fiber& self, carrier& kept) noexcept {
    UMS_ASSERT(self.blocks.depth.get() == 0 || self.blocks.has_permit.get(),
               "ums::keep_carrier ends inside a marked region that began in it");
    const bool is_inside = kept.enter() != nullptr;
    carrier* const relief = keep::take_relief(kept);
    kept.is_kept.set(false);
    kept.exceptions = arch::exception_state_of_thread();
    if (is_inside) kept.leave(self.race);
    kept.pool.give_relief(relief);
}

}  // namespace

carrier* keep::take_relief(carrier& of) noexcept {
    carrier* const relief = of.relief.get();
    of.relief.set(nullptr);
    return relief;
}

void keep::wait_for_fiber(carrier& kept) noexcept {
    if (carrier* const relief = take_relief(kept)) kept.pool.put_back(*relief);
    kept.stand_by();
}

// Entered in the processor's TSan context and left in the fiber's, as the next one.
UMS_UNINSTRUMENTED void keep::switch_to(carrier& kept, fiber& self, fiber* next,
                                        after_switch* after) noexcept {
    carrier* const relief = take_relief(kept);
    UMS_ASSERT(relief != nullptr, "a carrier that is kept has a processor and no relief");
    if (after == &kept.after) {  // Of which there is one, and it is needed below.
        relief->after = *after;
        after = &relief->after;
    }
    relief->begun.set(after);
    relief->runs_first.set(next);
    leave_and_return(kept, self, kept.leave_behind(&finish_leaving, &self, relief));
}

UMS_UNINSTRUMENTED void keep::leave_and_return(carrier& kept, fiber& self,
                                               after_switch* after) noexcept {
    const int kept_errno = os::read_errno(kept.errno_at);
    for (carrier* c = &kept;; after = c->leave_behind(&finish_return, &self, &kept)) {
        c->running.set(nullptr);
        arch::start_switch(self.shadow, c->loop_shadow);
        const arch::arrival a = arch::switch_context(self.context, c->loop, c, after);
        arch::finish_switch(self.shadow);
        c = static_cast<carrier*>(a.carrier);
        if (a.after != nullptr) {
            const auto* h = static_cast<const after_switch*>(a.after);
            h->finish(*h, *c);
        }
        if (c == &kept) break;
    }
    os::write_errno(kept.errno_at, kept_errno);
    kept.leave(self.race);
}

void keep::end(fiber& self) noexcept {
    self.own.keeps = 0;
    finish(self, *this_carrier());
}

}  // namespace ums::sched

namespace ums::impl {

using namespace sched;

void keep_carrier_enter() {
    const here at;
    if (at.self == nullptr || at.self->own.keeps++ != 0) return;
    carrier* relief = nullptr;
    const int error = at.on->pool.take_relief(relief);
    if (error != 0) {
        at.self->own.keeps = 0;
        throw std::system_error{error, std::generic_category(),
                                "ums::keep_carrier: no kernel thread for it (options::carriers, "
                                "UMS_CARRIERS, ulimit -u)"};
    }
    begin(*at.self, *at.on, *relief);
}

void keep_carrier_leave() noexcept {
    const here at;
    if (at.self == nullptr) return;
    UMS_ASSERT(at.self->own.keeps != 0, "the end of a keep_carrier scope that has not begun");
    if (--at.self->own.keeps == 0) finish(*at.self, *at.on);
}

}  // namespace ums::impl
