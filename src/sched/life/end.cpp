// SPDX-License-Identifier: MIT
#include "sched/life/end.hpp"

#include "base/assert.hpp"
#include "os/memory.hpp"
#include "sched/life/recycle.hpp"
#include "sched/run/departure.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/wake.hpp"

namespace ums::sched {

bool measure_stacks = false;
constinit base::atomic<std::size_t> stack_high_water;

namespace {

// Measures how deep the ended fiber has used its stack. Gives what it used back to the kernel, so
// that the next fiber on the stack is measured alone; but not the top, where a joiner finds what
// the fiber keeps for it.
void measure(const fiber& f) noexcept {
    const std::size_t used = mem::high_water_bytes(f);
    std::size_t seen = stack_high_water.load(base::relaxed);
    while (used > seen &&
           !stack_high_water.compare_exchange(seen, used, base::relaxed, base::relaxed)) {
    }
    const auto top = reinterpret_cast<std::uintptr_t>(&f) - fiber::top_bytes;
    const std::uintptr_t end = top / os::page_bytes * os::page_bytes;
    char* const bottom = f.bottom();
    os::system.madvise(bottom, end - reinterpret_cast<std::uintptr_t>(bottom), MADV_DONTNEED);
}

// Runs on the stack of the fiber that runs next: the ended fiber's is no longer in use. `word` is
// the joiner word, if the joiner was there when the end began.
void finish_end(const after_switch& h, carrier_core& c) noexcept {
    fiber& f = *h.self;
    arch::happens_after(&f.joiner);
    if (measure_stacks) measure(f);
    std::uintptr_t was = h.word;
    // sync(join): release publishes the fiber's end; acquire sees the joiner.
    if (was > fiber::detached)
        // No other thread changes the word any more.
        f.joiner.store(fiber::finished, base::release);
    else if (was == fiber::running)
        was = f.joiner.exchange(fiber::finished, base::acq_rel);
    if (was == fiber::detached)
        give_back(f, c.proc.get());
    else if (was == fiber::discarded)
        return run_again_to_drop(f, *c.proc.get());
    else if (was != fiber::running)
        let_go_on(*reinterpret_cast<parkable*>(was), *c.proc.get(), &f);
    c.proc.get()->count_end();
}

// Inside `p`. If a fiber waits in join() and may run here, it continues at once, without a queue in
// between, and nothing is left to be done after the switch: nobody but that joiner looks at the
// ended fiber any more, and no drain() is over while the joiner, which is of this cluster, exists.
// Returns the joiner then, else null.
UMS_ALWAYS_INLINE fiber* end_for_joiner(fiber& self, processor& p) noexcept {
    // sync(join): sees the joiner.
    const std::uintptr_t word = self.joiner.load(base::acquire);
    if (word <= fiber::detached || !reinterpret_cast<parkable*>(word)->is_fiber) return nullptr;
    auto* const joiner = static_cast<fiber*>(reinterpret_cast<parkable*>(word));
    if (measure_stacks || !p.may_run(*joiner) || !p.may_continue_directly()) return nullptr;
    arch::happens_after(&self.joiner);
    // sync(join): publishes the fiber's end.
    self.joiner.store(fiber::finished, base::release);
    p.count_end_of_joined();
    return joiner;
}

[[noreturn, gnu::noinline]] void end_anyhow(carrier_core* c, fiber* self) noexcept {
    departure<false> leaving{c, self};
    processor* const p = leaving.enter();
    after_switch* after = nullptr;
    fiber* next = end_for_joiner(*self, *p);
    if (next == nullptr) {
        // sync(join): as in end_for_joiner().
        after = leaving.then(&finish_end, nullptr, self->joiner.load(base::acquire));
        next = p->pick();
    }
    leaving.record(*p, trace_event::end, next);
    leaving.for_good(next, after);
}

}  // namespace

// The usual ends call no function before the switch, so they save no registers.
void end(fiber* self) noexcept {
    arch::happens_before(&self->joiner);
    departure<false> leaving{this_carrier_core(), self};
    if (processor* const p = leaving.on->try_enter()) [[likely]] {
        if (p->trace == nullptr) [[likely]] {
            if (fiber* const joiner = end_for_joiner(*self, *p)) leaving.for_good(joiner, nullptr);
            // sync(join): as in end_for_joiner().
            const std::uintptr_t word = self->joiner.load(base::acquire);
            if (fiber* const next = p->ready.pop_within_round())
                leaving.for_good(next, leaving.then(&finish_end, nullptr, word));
        }
        leaving.stay();
    }
    end_anyhow(leaving.on, self);
}

// finish_join has parked the fiber in the joiner word: the ended fiber has to resume it. Call it
// inside.
void let_go_on(parkable& joiner, processor& p, const fiber* ended) noexcept {
    if (!joiner.is_fiber) return wake(joiner);
    auto& f = static_cast<fiber&>(joiner);
    UMS_ASSERT(f.id.get() != 0, "a joiner is gone");
    if (p.trace != nullptr) [[unlikely]]
        trace_wake(*p.trace, f, ended);
    // Of a walk through a tree it is the next part.
    if (p.may_run(f) && !p.has_policy() && p.ready.has_walk()) {
        p.ready.push_caller(f);
        return p.wake_help();
    }
    // The fiber that runs here next was chosen before, and may take long.
    if (ready::at(p, f, processor::place::next)) p.wake_help();
}

}  // namespace ums::sched
