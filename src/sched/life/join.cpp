// SPDX-License-Identifier: MIT

// Waiting for a fiber's end, or detaching it. The public face is ums/fiber.hpp.

#include <cstdio>
#include <exception>
#include <string>
#include <system_error>

#include "base/assert.hpp"
#include "os/cpu/topology.hpp"
#include "sched/fiber/access.hpp"
#include "sched/life/end.hpp"
#include "sched/life/plain_join.hpp"
#include "sched/life/recycle.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/departure.hpp"
#include "sched/run/park.hpp"
#include "ums/fiber.hpp"

namespace ums::sched {

namespace {

// A fiber parks in the joiner word itself rather than in its own word. It is published there only
// after its registers are saved, so a thread that takes it out of the word owns it, and one
// compare-and-swap serves both registration and park. (A plain thread publishes its parkable first
// and parks there.)
void finish_join(const after_switch& h, carrier_core& c) noexcept {
    std::uintptr_t was = fiber::running;
    // sync(join): release publishes the joiner's registers to the end of the joined fiber. If that
    // end came first, the joiner, which acquires it when it runs again, continues.
    if (static_cast<fiber*>(h.other)->joiner.compare_exchange(
            was, reinterpret_cast<std::uintptr_t>(static_cast<parkable*>(h.self)), base::release,
            base::relaxed))
        return;
    UMS_ASSERT(was == fiber::finished, "a fiber was joined twice");
    let_go_on(*h.self, *c.proc.get(), static_cast<fiber*>(h.other));
}

// If the joined fiber is what runs next here, it is in no queue, and first looks at its joiner word
// when it has a processor, which is after the joiner's registers are saved: the word is written
// before the switch, and nothing is left for after it. But a joiner that keeps its carrier leaves
// later than the next fiber begins.
template <bool keeps>
UMS_ALWAYS_INLINE after_switch* publish_joiner(departure<keeps>& leaving, fiber* target,
                                               const fiber* next) noexcept {
    if (keeps || next != target) return leaving.then(&finish_join, target);
    UMS_ASSERT(target->joiner.load(base::relaxed) == fiber::running, "a fiber was joined twice");
    // relaxed: this thread runs the target next, and where that goes it takes the word along.
    target->joiner.store(reinterpret_cast<std::uintptr_t>(static_cast<parkable*>(leaving.self)),
                         base::relaxed);
    return nullptr;
}

template <class Finish>
UMS_ALWAYS_INLINE void wait_for_end(carrier_core* c, fiber* target, Finish finish) noexcept {
    depart(c, c->running.get(), [target, finish](auto leaving) UMS_INLINED {
        processor* p = leaving.enter();
        p->ready.call_new();
        fiber* const next = p->pick();
        leaving.record(*p, trace_wait::join, next, target);
        finish(leaving, next, publish_joiner(leaving, target, next));
    });
}

[[gnu::noinline]] void wait_for_end(carrier_core* c, fiber* target) noexcept {
    wait_for_end(c, target, [](auto& leaving, fiber* next, after_switch* after) UMS_INLINED {
        leaving.to(next, after);
    });
}

// For a plain thread.
void wait_for_end(parkable& self, fiber* target) noexcept {
    std::uintptr_t was = fiber::running;
    // sync(join): release publishes this parkable to the fiber's end.
    if (target->joiner.compare_exchange(was, reinterpret_cast<std::uintptr_t>(&self), base::release,
                                        base::relaxed))
        return park(park_kind::internal);
    UMS_ASSERT(was == fiber::finished, "a fiber was joined twice");
}

UMS_ALWAYS_INLINE bool has_ended(fiber* f) noexcept {
    // sync(join): sees the fiber's end.
    if (f->joiner.load(base::acquire) != fiber::finished) return false;
    arch::happens_after(&f->joiner);
    return true;
}

// Waits for a fiber that had not ended. Returns false if a fork() has left it behind.
UMS_ALWAYS_INLINE bool wait_from(here at, fiber* f) noexcept {
    // It will never end. Its stack is not used again: others may still name it.
    if (f->home_cluster.get()->is_left_behind()) [[unlikely]]
        return false;
    if (at.self != nullptr) [[likely]]
        wait_for_end(at.on, f);
    else
        wait_for_end(this_parkable(), f);
    const bool is_over = has_ended(f);
    UMS_ASSERT(is_over, "a join returned before the fiber's end");
    return true;
}

// A fiber waits, and frees the other. Returns true.
[[gnu::noinline]] bool wait_and_free(carrier_core* c, fiber* target) noexcept {
    wait_for_end(c, target, [target](auto& leaving, fiber* next, after_switch* after) UMS_INLINED {
        constexpr bool keeps = std::remove_reference_t<decltype(leaving)>::keeps;
        if constexpr (keeps)
            leaving.to(next, after);
        else
            leaving.to_and_stay_inside(next, after);
        const bool is_over = has_ended(target);
        UMS_ASSERT(is_over, "a join returned before the fiber's end");
        if constexpr (keeps) return free_fiber(*target, here{});
        give_back(*target, leaving.on->proc.get());
        leaving.stay();
        arch::happens_after(&target->joiner);  // The fiber, too, and not only its processor.
    });
    return true;
}

[[gnu::noinline]] bool free_anyhow(fiber* ended) noexcept {
    free_fiber(*ended, here{});
    return true;
}

// For a fiber. The usual ways call a function as the last thing, if at all, so they save no
// registers. Returns false if a fork() has left the other behind.
UMS_ALWAYS_INLINE bool join_from_fiber(here at, fiber* f) noexcept {
    if (!has_ended(f)) {
        // It will never end. Its stack is not used again: others may still name it.
        if (f->home_cluster.get()->is_left_behind()) [[unlikely]]
            return false;
        return wait_and_free(at.on, f);
    }
    if (processor* const p = at.on->try_enter()) [[likely]] {
        const bool is_free = try_give_back(*f, *p);
        at.leave();
        if (is_free) [[likely]]
            return true;
    }
    return free_anyhow(f);
}

// The same for a plain thread.
bool join_from_thread(fiber* f) noexcept {
    const here at;
    if (!has_ended(f) && !wait_from(at, f)) return false;
    free_fiber(*f, at);
    return true;
}

[[gnu::noinline]] void join_registered(fiber* f) noexcept {
    const os::visit registered{plain_joins};
    static_cast<void>(join_from_thread(f));
}

[[noreturn, gnu::noinline]] void refuse_joining_itself() {
    throw std::system_error{std::make_error_code(std::errc::resource_deadlock_would_occur),
                            "ums: a fiber cannot join itself"};
}

}  // namespace

}  // namespace ums::sched

namespace ums::impl {

using namespace sched;

void join(sched::fiber* f) {
    const here at;
    if (at.self == f) refuse_joining_itself();
    if (at.self == nullptr) [[unlikely]]
        return join_registered(f);
    static_cast<void>(join_from_fiber(at, f));
}

bool join_part(sched::fiber* f) noexcept {
    const here at;
    sched::cluster& home = *f->home_cluster.get();  // Not the fiber's any more after the join.
    if (at.self != nullptr) [[likely]]
        return join_from_fiber(at, f);
    const bool is_over = join_from_thread(f);
    home.take_back_spawn();
    return is_over;
}

bool join_keeping(sched::fiber* f) {
    const here at;
    if (at.self == f) refuse_joining_itself();
    if (at.self != nullptr) [[likely]]
        return has_ended(f) || wait_from(at, f);
    // The stack is in use until the second step, so a stop waits for that.
    plain_joins.come();
    const bool is_over = has_ended(f) || wait_from(at, f);
    if (!is_over) plain_joins.go();
    return is_over;
}

void join_finish(sched::fiber* f) noexcept {
    const here at;
    free_fiber(*f, at);
    if (at.self == nullptr) plain_joins.go();
}

void detach(sched::fiber* f) noexcept {
    std::uintptr_t was = sched::fiber::running;
    // sync(join): release gives the fiber to its own end; acquire sees that end.
    if (f->joiner.compare_exchange(was, sched::fiber::detached, base::acq_rel, base::acquire))
        return;
    UMS_ASSERT(was == sched::fiber::finished, "a fiber was detached while another joins it");
    arch::happens_after(&f->joiner);
    free_fiber(*f, here{});
}

void discard(sched::fiber* f, void (*drop)(void* fiber)) noexcept {
    f->drop = drop;
    std::uintptr_t was = sched::fiber::running;
    // sync(join): release gives the fiber, and `drop`, to its own end; acquire sees that end.
    if (f->joiner.compare_exchange(was, sched::fiber::discarded, base::acq_rel, base::acquire))
        return;
    UMS_ASSERT(was == sched::fiber::finished, "a fiber was detached while another joins it");
    arch::happens_after(&f->joiner);
    drop(f);
    free_fiber(*f, here{});
}

fiber_ref ref_of(sched::fiber* f) noexcept { return access::ref(f); }

void terminate_joinable() noexcept {
    std::fprintf(stderr,
                 "ums: the handle of a joinable fiber was destroyed or assigned to: join, detach "
                 "or move it first, or use ums::jfiber\n");
    std::terminate();
}

void throw_not_joinable(const char* call) {
    throw std::system_error{
        std::make_error_code(std::errc::invalid_argument),
        std::string{"ums: "} + call +
            ": expected a joinable handle; this one is empty, or its fiber was joined, detached "
            "or moved from it already"};
}

}  // namespace ums::impl

namespace ums {

unsigned fiber::hardware_concurrency() noexcept { return os::usable_cpus(); }

}  // namespace ums
