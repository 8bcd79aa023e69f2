// SPDX-License-Identifier: MIT
//
// Why no wake-up is lost. Four threads may take part in a wait: the kept carrier, its relief, the
// waker, and the carrier `by` that takes the fiber from its queue.
//
// - The waker and the fiber: as at every switch. The fiber is parked by the after-switch action,
//   once its registers are saved; only the thread that runs the action is another one, the relief.
//   A wake-up that comes before leaves its token, and the action then makes the fiber ready in the
//   processor that the relief holds. A wake-up that comes after owns the fiber, queues it and wakes
//   an idle processor, as for any fiber.
// - The action cannot be left undone. The relief stands by from the beginning of the scope, or from
//   the moment when it gave its processor to the kept carrier. So it is on no list, no other thread
//   gives it anything, and it needs only the processor that the kept carrier's loop brings.
//   That loop moves the processor, then stores `holds` in the relief's turn word, then wakes it.
//   The relief sleeps in a futex only while the word is `waits`: it sees `holds`, or is woken.
// - `by` and the kept carrier: the same two words with the roles exchanged. The kept carrier's word
//   becomes `waits` in finish_leaving(), before the processor leaves it, hence before the relief
//   parks the fiber, hence before a waker can queue it, hence before `by` can store `holds` there.
//   After rejoin() the order is the same: wait_for_fiber() comes before the fiber is made ready. So
//   no `holds` is ever overwritten, although the thread may not sleep yet when it comes. And only
//   one `by` can come, because one thread at a time owns a fiber that is ready.
// - `by` becomes the relief: finish_return() makes it stand by and names it as the relief before
//   the loop moves the processor, because the fiber may wait again at once, and give it back.
//
// Why no fiber waits for a kernel thread: see the invariants in docs/design/keep-carrier.md. The
// relief is either with the kept carrier, or holds its former processor, or went back to the spares
// because a block had taken the processor. In that last case the fiber needs none to become ready.
#include "sched/block/keep.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include "arch/exception_state.hpp"
#include "base/assert.hpp"
#include "os/errno.hpp"
#include "sched/block/carrier_pool.hpp"
#include "sched/block/hand_off.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/here.hpp"
#include "ums/keep_carrier.hpp"

namespace ums::sched {

namespace {

// Never written.
constinit arch::exception_state always_active{nullptr, 1};

// The two actions run on a loop's stack, inside the processor that the loop then gives away
// (carrier::run_fibers()).

void finish_leaving(const after_switch& h, carrier_core& core) noexcept {
    carrier& kept = core.whole();
    kept.keeping.gives_to.set(static_cast<carrier*>(h.other));
    kept.stand_by();
}

void finish_return(const after_switch& h, carrier_core& core) noexcept {
    carrier& by = core.whole();
    auto& kept = *static_cast<carrier*>(h.other);
    UMS_ASSERT(kept.keeping.relief.get() == nullptr, "a carrier gets a second relief");
    kept.keeping.relief.set(&by);
    kept.keeping.runs_first.set(h.self);
    by.keeping.gives_to.set(&kept);
    by.stand_by();
}

// begin() and finish() change the carrier inside its processor, if it has one, because a detector
// may have a claim on it.
void begin(fiber& self, carrier& kept, carrier& relief) noexcept {
    arch::happens_before(&relief);
    const bool is_inside = kept.enter() != nullptr;
    kept.keeping.relief.set(&relief);
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
    carrier* const relief = of.keeping.relief.get();
    of.keeping.relief.set(nullptr);
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
    if (after == &kept.after) {  // A carrier has only one, which is needed below.
        relief->after = *after;
        after = &relief->after;
    }
    relief->keeping.begun.set(after);
    relief->keeping.runs_first.set(next);
    leave_and_return(kept, self, kept.then(&finish_leaving, &self, relief));
}

UMS_UNINSTRUMENTED void keep::leave_and_return(carrier& kept, fiber& self,
                                               after_switch* after) noexcept {
    const int kept_errno = os::read_errno(kept.errno_at);
    for (carrier* c = &kept;; after = c->then(&finish_return, &self, &kept)) {
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
    self.belongings.keeps = 0;
    finish(self, *this_carrier());
}

void keep::begin_again(fiber& self) {
    if (self.belongings.keeps == 0) return;
    const auto scopes = std::exchange(self.belongings.keeps, 0);
    impl::keep_carrier_enter();
    self.belongings.keeps = scopes;
}

}  // namespace ums::sched

namespace ums::impl {

using namespace sched;

void keep_carrier_enter() {
    const here at;
    if (at.self == nullptr || at.self->belongings.keeps++ != 0) return;
    fiber& self = *at.self;
    carrier* relief = nullptr;
    const int error =
        at.on->whole().pool.take_relief(relief);  // It may have yielded: see this_carrier().
    if (error == 0) begin(self, *this_carrier(), *relief);
    // If the kernel thread was found blocked while the relief was made, it has borrowed a permit,
    // which other scopes may want. It gives the permit back here.
    if (self.blocks.depth.get() == 0) get_processor(*this_carrier());
    if (error != 0) {
        self.belongings.keeps = 0;
        throw std::system_error{error, std::generic_category(),
                                "ums: keep_carrier: no kernel thread for it (options::carriers, "
                                "UMS_CARRIERS, ulimit -u)"};
    }
}

void keep_carrier_leave() noexcept {
    const here at;
    if (at.self == nullptr) return;
    UMS_ASSERT(at.self->belongings.keeps != 0,
               "the end of a keep_carrier scope that has not begun");
    if (--at.self->belongings.keeps == 0) finish(*at.self, at.on->whole());
}

}  // namespace ums::impl
