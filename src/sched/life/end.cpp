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
// the joiner word, if the joiner was there when the end began; `other` is the joiner, if it is the
// one that runs next.
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
    else if (was != fiber::running && h.other == nullptr)
        let_go_on(*reinterpret_cast<parkable*>(was), *c.proc.get(), &f);
    c.proc.get()->count_end();
}

}  // namespace

void end(fiber* self) noexcept {
    arch::happens_before(&self->joiner);
    departure<false> leaving{this_carrier_core(), self};
    processor* p = leaving.enter();
    // A fiber that waits in join() here continues at once, without a queue in between.
    // sync(join): sees the joiner.
    const std::uintptr_t word = self->joiner.load(base::acquire);
    fiber* next = nullptr;
    if (word > fiber::detached && reinterpret_cast<parkable*>(word)->is_fiber) {
        auto* joiner = static_cast<fiber*>(reinterpret_cast<parkable*>(word));
        if (p->may_run(*joiner) && p->may_continue_directly()) next = joiner;
    }
    after_switch* after = leaving.then(&finish_end, next, word);
    if (next == nullptr) next = p->pick();
    leaving.record(*p, trace_event::end, next);
    leaving.for_good(next, after);
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
