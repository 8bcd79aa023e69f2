// SPDX-License-Identifier: MIT
//
// Marked regions. The public face is ums/blocking.hpp.
#include "ums/blocking.hpp"

#include "base/assert.hpp"
#include "sched/block/carrier_pool.hpp"
#include "sched/block/hand_off.hpp"
#include "sched/block/keep.hpp"
#include "sched/block/stop.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/departure.hpp"
#include "sched/run/here.hpp"

namespace ums::sched {

void get_processor(carrier& c) noexcept {
    // A thread that takes it away may be at work on this carrier: enter() waits for that.
    if (c.enter() != nullptr) return c.leave(c.running.get()->race);
    depart(&c, c.running.get(), [](auto leaving) { static_cast<void>(rejoin(leaving.on)); });
}

}  // namespace ums::sched

namespace ums::impl {

using namespace sched;

namespace {

// Called inside. The fiber continues outside, without a processor. Inlined, as give_up() is.
UMS_ALWAYS_INLINE void give_up_to(carrier& spare, carrier& c, const processor& p) noexcept {
    if (p.trace != nullptr) [[unlikely]]
        p.trace->write(trace_event::hand_off, c.running.get()->id.get(),
                       static_cast<std::uint64_t>(c.tid.get()),
                       static_cast<std::uint64_t>(spare.tid.get()));
    hand_off::give_up(c, spare);
}

// Without a detector nobody would notice: the processor goes now.
void give_up_at_once(carrier& c) noexcept {
    if (c.is_kept.get()) {
        processor* const p = c.enter();
        if (p == nullptr) return;
        c.pool.count_hand_off();
        return give_up_to(*keep::take_relief(c), c, *p);
    }
    // The spare that is taken is the caller's alone. The caller keeps it if its processor goes to
    // another carrier meanwhile.
    carrier* spare = c.pool.take_spare(&c);
    // If there is no spare, the maker makes one, and that one takes the processor.
    if (processor* const p = spare != nullptr ? c.enter() : nullptr) {
        give_up_to(*spare, c, *p);
    } else if (spare != nullptr) {
        c.pool.put_back(*spare);
    }
    c.pool.replenish();
}

}  // namespace

void blocking_enter() noexcept {
    const here at;
    if (at.self == nullptr) return;
    const std::uint32_t depth = at.self->blocks.depth.get();
    if (depth != 0) return at.self->blocks.depth.set(depth + 1);
    // Waits before the region counts as one, because the wait may change the carrier. A fiber that
    // keeps its carrier has a permit already.
    if (at.on->is_kept.get()) {
        at.on->whole().pool.end_rest();
    } else {
        at.self->home_cluster.get()->carriers.take_permit();
        at.self->blocks.has_permit.set(true);
    }
    at.self->blocks.depth.set(1);
    carrier& now_on = *this_carrier();
    if (!detection::is_on()) give_up_at_once(now_on);
}

void blocking_leave() noexcept {
    const here at;
    if (at.self == nullptr) return;
    UMS_ASSERT(at.self->blocks.depth.get() != 0, "the end of a blocking region that has not begun");
    const std::uint32_t depth = at.self->blocks.depth.get() - 1;
    at.self->blocks.depth.set(depth);
    if (depth != 0) return;
    if (at.self->blocks.has_permit.get()) {
        at.self->blocks.has_permit.set(false);
        at.self->home_cluster.get()->carriers.give_permit();
    } else {
        at.on->whole().pool.begin_rest();
    }
    get_processor(at.on->whole());
}

void uninterruptible_enter() noexcept {
    const here at;
    if (at.self != nullptr) at.self->blocks.uninterruptible.add(1);
}

void uninterruptible_leave() noexcept {
    const here at;
    if (at.self == nullptr) return;
    UMS_ASSERT(at.self->blocks.uninterruptible.get() != 0,
               "the end of an uninterruptible section that has not begun");
    at.self->blocks.uninterruptible.add(~std::uint32_t{0});
    if (at.self->blocks.uninterruptible.get() != 0 || !at.self->blocks.stop_wanted.get()) return;
    at.self->blocks.stop_wanted.set(false);
    stop::make_up(at.on->whole(), *at.self);
}

}  // namespace ums::impl
