// SPDX-License-Identifier: MIT
//
// The text of carry/ownership, carry/turn, sched/block/hand_off, stop and carrier_pool, run under
// the executions that x86-TSO allows, with signals at any instruction: fibers that block, are
// handed off, come back, are stopped and released.
//
// Around it (internal/modelled/) there are a queue for fibers, a loop that runs them, and fibers
// whose bodies are a few steps, so that any strand can continue one. For each mutant of the text,
// and for each memory order in it, the test names a program that finds it.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "internal/modelled/mutants.hpp"
#include "internal/modelled/surroundings.hpp"
#include "os/lock.hpp"
#include "ums/this_fiber.hpp"

#define base modelled_base
#define os modelled_os
#define arch modelled_arch
#define carry modelled_carry
#define sched modelled
#include "sched/run/carrier.hpp"
// Includes their functions, too:
#include "carry/ownership.cpp"
#include "sched/block/carrier_pool.cpp"
#include "sched/block/hand_off.cpp"
#include "sched/block/permits.cpp"
#include "sched/block/stop.cpp"

namespace ums::sched {

namespace {

using tso::model;

// A fiber's body: one letter a step.
//   b  a call that blocks: a detector may see it
//   c  computes: may be interrupted there
//   w  needs its processor: a section that only its holder may be in
//   r  blocks until a fiber has come to s
//   i  may be interrupted there, once
struct world {
    static constexpr unsigned most = 4;

    world(unsigned processors, unsigned carriers, unsigned bound, os::nanoseconds slice)
        : home{processors, bound, slice} {
        for (unsigned i = 0; i < processors; ++i) home.at[i] = &processor_at[i].emplace(home);
        for (unsigned i = 0; i < carriers; ++i) {
            carrier* c = carrier_at[i] = &room_for_carriers[i].emplace(home.carriers);
            c->next_made = home.carriers.all_;
            home.carriers.all_ = c;
            c->turn.set(turn_word::waits);
            c->tid.set(static_cast<int>(i) + 1);
        }
        detection::calls = &calls;
        here = this;
        carry::interrupt::on_coarse = [](int tid) noexcept {
            const fiber* const left = here->carrier_at[tid - 1]->running.get();
            UMS_ASSERT(left->is_seen, "a fiber is found blocked that no detector has seen");
        };
        home.carriers.counters_.now = carriers;
        home.carriers.counters_.spare = carriers - processors;
    }

    static inline world* here = nullptr;

    world(const world&) = delete;
    world& operator=(const world&) = delete;

    fiber& add_fiber(const char* body) {
        fiber& f = fiber_at[fibers].emplace(home, fibers);
        bodies[fibers++] = body;
        return f;
    }
    // Before the strands run: the carrier holds the processor and runs the fiber.
    void hold(unsigned c, unsigned p, fiber& f) {
        carrier& holder = *carrier_at[c];
        processor& held = *home.at[p];
        holder.turn.set(turn_word::holds);
        holder.proc.set(&held);
        held.set_holder(&holder);
        holder.ownership.occupy();
        holder.running.set(first[c] = &f);
    }
    // The same: the fiber is blocked there, and the processor has gone.
    void be_away(unsigned c, fiber& f) {
        carrier& blocked = *carrier_at[c];
        blocked.turn.set(turn_word::holds);
        blocked.running.set(&f);
        blocked.has_borrowed = true;
        home.carriers.permits_.used_.store(home.carriers.permits_.used() + 1, base::relaxed);
        --home.carriers.counters_.spare;
    }
    // The same: the time slice of the fiber that the carrier runs is over.
    void end_time_slice(unsigned c) {
        carrier_at[c]->stopping.ends_time_slice_of.set(carrier_at[c]->activity());
    }
    // Before the strands run.
    void queue(fiber& f) {
        ++model::running().at(f.queued);
        home.queue.fetch_or(1u << f.number, base::relaxed);
    }
    void stop_fibers(unsigned times) {
        model::running().interruptible(
            [] {
                static ucontext_t nowhere{};
                stop::on_interrupt({}, &nowhere);
            },
            times);
    }

    // A strand: the carrier, which holds a processor and runs a fiber, or is a spare.
    void run(unsigned number, unsigned interrupts = 0) {
        carrier& c = *carrier_at[number];
        model::running().slot() = &c;
        if (interrupts != 0) stop_fibers(interrupts);
        if (fiber* f = c.running.get()) {
            run_body(*f);
            this_carrier()->running.set(nullptr);
            go_on(c);
        }
        loop(c);
    }
    // A strand: a detector that saw the carrier blocked. It may be late: then it continues after an
    // s.
    void detect(unsigned number, bool is_late = false) {
        carrier& c = *carrier_at[number];
        const std::uint64_t seen = c.activity();
        // It has seen what the carrier ran first, or else anything that may run there later.
        for (unsigned i = 0; i < fibers; ++i)
            fiber_at[i]->is_seen |= seen != at_start || &*fiber_at[i] == first[number];
        if (is_late) await_flag();
        bool was_marked = false;
        results[number] = hand_off::from(c, seen, was_marked);
        UMS_ASSERT(home.carriers.permits_.used() <= home.carriers.most_permits(),
                   "more permits than there are");
    }

    // A strand: the part of the detector that releases stopped fibers. Time passes with each look.
    // A look that finds that something has switched is not followed by another: `looks` is one more
    // than there may be of these.
    void release_stopped(unsigned looks = 2) {
        for (;;) {
            const std::uint32_t seen = calls.load(base::acquire);
            for (unsigned i = 0; i < looks; ++i)
                static_cast<void>(home.carriers.release_if_stuck(now += stop::patience));
            os::futex_wait(calls, seen);
        }
    }

    // A strand: a thief.
    void steal(unsigned number) {
        carrier& from = *carrier_at[number];
        if (!from.ownership.try_claim()) return;
        processor* p = from.proc.get();
        UMS_ASSERT(p != nullptr, "a claim on a carrier that holds no processor");
        touch(*p);
        from.ownership.unclaim();
    }

    void loop(carrier& c) {
        while (c.pool.wait_for_processor(c)) {
            if (c.proc.get() == nullptr) continue;
            UMS_ASSERT(c.enter() != nullptr, "a carrier was told to run, and holds no processor");
            if (fiber* stopped = std::exchange(c.brings, nullptr))
                home.make_ready_from_outside(*stopped);
            go_on(c);
        }
    }
    // Like carrier::run_fibers(): inside, with a processor, until that is gone.
    void go_on(carrier& c) {
        for (processor* p = c.proc.get(); p != nullptr; p = c.proc.get()) {
            UMS_ASSERT(c.ownership.is_inside(),
                       "a carrier's loop goes on outside of its processor");
            touch(*p);
            p->switches.set(p->switches.get() + 1);
            fiber* f = find(c, *p);
            c.running.set(f);
            if (void* stopped = f->context.target) {
                f->context.target = nullptr;
                c.running.set(nullptr);
                const after_switch* a = c.then(&finish_relay, nullptr, stopped);
                a->finish(*a, c);
                continue;
            }
            c.leave(f->race);
            run_body(*f);
            c.running.set(nullptr);
        }
    }
    fiber* find(carrier& c, processor& p) {
        for (;;) {
            const std::uint32_t seen = home.signal.load(base::acquire);
            if (c.pool.has_stopped())
                if (carrier* stopped = c.pool.take_stopped()) return stopped->running.get();
            if (const int next = home.pop(); next >= 0) {
                fiber& f = *fiber_at[static_cast<unsigned>(next)];
                --model::running().at(f.queued);
                return &f;
            }
            c.leave(c.race);
            os::futex_wait(home.signal, seen);
            UMS_ASSERT(c.enter() == &p, "a processor went away that runs no fiber");
        }
    }

    // Outside, from where it left off; returns inside its processor, at its end.
    void run_body(fiber& f) {
        model& m = model::running();
        if (++m.at(f.runs) != 1) m.fail("a fiber runs on two carriers");
        for (const char* step = bodies[f.number] + f.stage; *step != '\0'; ++step, ++f.stage) {
            if (*step == 'w') {
                carrier_core* c = this_carrier_core();
                processor* p = enter_surely(c);
                touch(*p);
                c->leave(f.race);
            } else if (*step == 'r') {
                await_flag();
            } else if (*step == 'i') {
                stop_fibers(1);
                m.uninterruptible();
            } else if (*step == 's') {
                flag.store(1, base::release);
                os::futex_wake(flag.address(), __INT_MAX__);
            } else {
                m.step(*step == 'b' ? "blocks" : "computes");
            }
        }
        carrier_core* c = this_carrier_core();
        touch(*enter_surely(c));
        --m.at(f.runs);
        f.is_done = true;
    }
    void await_flag() {
        while (flag.load(base::acquire) == 0) os::futex_wait(flag, 0);
    }
    void touch(processor& p) {
        model& m = model::running();
        if (++m.at(p.inside) != 1) m.fail("two are inside a processor");
        m.step("inside");
        m.touch(p.content, "what only a processor's holder may touch");
        --m.at(p.inside);
    }

    // Call when all strands have come to rest.
    std::string verdict() {
        for (unsigned i = 0; i < fibers; ++i)
            if (!fiber_at[i]->is_done) return "a fiber does not end";
        if (home.carriers.permits_.used() != 0) return "a permit is lost";
        if (home.carriers.has_stopped())
            return "a carrier is listed as stopped, and no fiber is left";
        unsigned holders = 0;
        for (carrier* c : carrier_at) {
            if (c == nullptr) continue;
            processor* p = c->proc.get();
            holders += p != nullptr;
            if (p != nullptr && p->holder() != c) return "a processor names another holder";
            if (c->stopping.is_going_on.get()) return "a carrier is being stopped for ever";
            if (p != nullptr && c->turn.now() != turn_word::holds)
                return "a holder's turn is not `holds`";
        }
        return holders == home.active() ? "" : "a processor is lost";
    }

    cluster home;
    std::optional<carrier> room_for_carriers[most];
    std::optional<processor> processor_at[2];
    carrier* carrier_at[most] = {};
    std::optional<fiber> fiber_at[most];
    const char* bodies[most] = {};
    unsigned fibers = 0;
    base::atomic<std::uint32_t> flag;
    base::atomic<std::uint32_t> calls;  // Of detection::runs().
    os::nanoseconds now = 0;            // As release_stopped() sees it.
    hand_off::result results[most] = {};
    // The fibers that the carriers run at the start, when their activity is this:
    fiber* first[most] = {};
    static constexpr std::uint64_t at_start = 1;
};

// Lies at one address in every execution, because some words hold pointers. Not destroyed, because
// its words disappeared with the execution.
alignas(world) char room[sizeof(world)];
world* the_world = nullptr;

world& make_world(unsigned processors, unsigned carriers, unsigned bound, os::nanoseconds slice) {
    return *(the_world = new (room) world(processors, carriers, bound, slice));
}

}  // namespace

// --- What the text calls ---

carrier::carrier(carrier_pool& p) noexcept : pool{p}, stopping{stop::source, 0} {
    ownership.reset(true);
    ownership.vacate();
}
void carrier::follow_processor() noexcept {}

[[noreturn]] static void never_here() {
    tso::model::running().fail("the model does not go there");
    std::abort();
}
parkable& this_parkable() noexcept { never_here(); }
void park(park_kind) noexcept { never_here(); }
void wake(parkable&) noexcept { never_here(); }
void carrier::run() noexcept { never_here(); }
// No fiber keeps its carrier here.
carrier* keep::take_relief(carrier&) noexcept { return nullptr; }
void keep::wait_for_fiber(carrier&) noexcept { never_here(); }
void keep::leave_and_return(carrier&, fiber&, after_switch*) noexcept { never_here(); }

void switch_to_loop(carrier_core* c, fiber* self, after_switch* after) noexcept {
    tso::model& m = tso::model::running();
    m.step("switches");
    c->running.set(nullptr);
    self->context.target = nullptr;
    --m.at(self->runs);
    after->finish(*after, *c);
    if (c->proc.get() != nullptr) m.fail("a fiber has left a carrier that holds a processor");
    the_world->loop(c->whole());
    m.stay();
    never_here();
}

}  // namespace ums::sched

namespace ums::carry {

void maker::ask(crew&) noexcept {}  // There are as many threads as allowed.
void maker::forget(crew&) noexcept {}
int maker::start(os::kernel_thread&, void* (*)(void*), void*) noexcept { return EAGAIN; }

}  // namespace ums::carry
#undef base
#undef os
#undef arch
#undef carry
#undef sched

namespace {

using namespace ums::modelled;
using ums::tso::model;
using ums::tso::program;

void strands_of(model& m, world& w, unsigned carriers, unsigned interrupted, unsigned interrupts) {
    for (unsigned i = 0; i < carriers; ++i)
        m.strand("carrier " + std::to_string(i),
                 [&w, i, interrupted, interrupts] { w.run(i, i == interrupted ? interrupts : 0); });
    m.at_rest([&w] { return w.verdict(); });
}

// Programs with fewer states come first.
const program programs[] = {
    // A holder of a processor, and a thief.
    {.name = "theft",
     .build =
         [](model& m) {
             world& w = make_world(1, 1, 4, 0);
             w.hold(0, 0, w.add_fiber("w"));
             strands_of(m, w, 1, ~0u, 0);
             m.strand("thief", [&w] { w.steal(0); });
         },
     .preemptions = 3},
    // The slice of the fiber that the holder runs is over while another fiber and a thief wait.
    {.name = "theft_of_preempted",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 1);
             w.hold(0, 0, w.add_fiber("iw"));
             w.end_time_slice(0);
             w.queue(w.add_fiber("w"));
             strands_of(m, w, 2, ~0u, 0);
             m.strand("thief", [&w] { w.steal(0); });
         },
     .preemptions = 1},
    // One fiber blocks, its processor goes to the spare, the fiber comes back.
    {.name = "hand_off",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 0);
             w.hold(0, 0, w.add_fiber("bw"));
             strands_of(m, w, 2, 0, 0);
             m.strand("detector", [&w] { w.detect(0); });
         },
     .preemptions = 1},
    // The detector has seen the fiber that ran before.
    {.name = "hand_off_of_the_next",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 0);
             w.hold(0, 0, w.add_fiber(""));
             w.queue(w.add_fiber("sc"));
             strands_of(m, w, 2, ~0u, 0);
             m.strand("detector", [&w] { w.detect(0, true); });
         },
     .preemptions = 1},
    // The fiber that has the processor waits for the stopped one, and no detector sees it blocked.
    {.name = "release",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 0);
             w.hold(0, 0, w.add_fiber("r"));
             w.be_away(1, w.add_fiber("isw"));
             strands_of(m, w, 2, ~0u, 0);
             m.strand("releaser", [&w] { w.release_stopped(); });
         },
     .preemptions = 1},
    // The fiber that is refused waits for the one that is away and stopped.
    {.name = "refused_for_a_stopped_one",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 2, 0);
             w.hold(0, 0, w.add_fiber("r"));
             w.be_away(1, w.add_fiber("is"));
             strands_of(m, w, 2, ~0u, 0);
             m.strand("detector", [&w] { w.detect(0); });
         },
     .preemptions = 1},
    // Another has the one permit. Its holder comes back; the fiber that is refused waits for one in
    // the queue.
    {.name = "refused_and_freed",
     .build =
         [](model& m) {
             world& w = make_world(1, 3, 2, 0);
             w.hold(0, 0, w.add_fiber("r"));
             w.be_away(1, w.add_fiber("bw"));
             w.queue(w.add_fiber("s"));
             strands_of(m, w, 3, ~0u, 0);
             m.strand("detector", [&w] { w.detect(0); });
         },
     .preemptions = 1},
    // A thief takes the processor of a carrier that blocks.
    {.name = "theft_of_blocked",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 0);
             w.hold(0, 0, w.add_fiber("bw"));
             strands_of(m, w, 2, ~0u, 0);
             m.strand("detector", [&w] { w.detect(0); });
             m.strand("thief", [&w] { w.steal(0); });
         },
     .preemptions = 1},
    // Like refused_and_freed, without a spare.
    {.name = "freed_without_a_spare",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 2, 0);
             w.hold(0, 0, w.add_fiber("r"));
             w.be_away(1, w.add_fiber("bw"));
             w.queue(w.add_fiber("s"));
             strands_of(m, w, 2, ~0u, 0);
             m.strand("detector", [&w] { w.detect(0); });
         },
     .preemptions = 2},
    // There is a permit, but no spare.
    {.name = "without_a_spare",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 3, 0);
             w.hold(0, 0, w.add_fiber("r"));
             w.be_away(1, w.add_fiber("bw"));
             w.queue(w.add_fiber("s"));
             strands_of(m, w, 2, ~0u, 0);
             m.strand("detector", [&w] { w.detect(0); });
         },
     .preemptions = 2},
    // The permit belongs to a preempted fiber, which gets a processor again.
    {.name = "freed_by_one_with_a_processor",
     .build =
         [](model& m) {
             world& w = make_world(2, 3, 3, 1);
             w.hold(0, 0, w.add_fiber("r"));
             w.hold(1, 1, w.add_fiber("ir"));
             w.end_time_slice(1);
             w.queue(w.add_fiber("s"));
             strands_of(m, w, 3, ~0u, 0);
             m.strand("detector", [&w] { w.detect(0); });
         },
     .preemptions = 1},
    // The fiber's time is over while another waits.
    {.name = "slice",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 1);
             w.hold(0, 0, w.add_fiber("cw"));
             w.end_time_slice(0);
             w.queue(w.add_fiber("w"));
             strands_of(m, w, 2, 0, 1);
             m.strand("releaser", [&w] { w.release_stopped(); });
         },
     .preemptions = 1},
    // A fiber that was stopped in its slice is released, and may be interrupted again. A processor
    // comes to its place while it asks for one.
    {.name = "release_from_the_queue",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 1);
             w.queue(w.add_fiber("r"));
             w.hold(0, 0, w.add_fiber("iisw"));
             w.end_time_slice(0);
             strands_of(m, w, 2, ~0u, 0);
             m.strand("releaser", [&w] { w.release_stopped(3); });
         },
     .preemptions = 1},
    // Two fibers block, and there is a permit for only one.
    {.name = "refuse",
     .build =
         [](model& m) {
             world& w = make_world(2, 3, 3, 0);
             w.hold(0, 0, w.add_fiber("bw"));
             w.hold(1, 1, w.add_fiber("bw"));
             strands_of(m, w, 3, ~0u, 0);
             m.strand("detector", [&w] {
                 w.detect(0);
                 w.detect(1);
             });
         },
     .preemptions = 1},
    // Like slice, with a detector that takes the fiber for blocked.
    {.name = "hand_off_of_preempted",
     .build =
         [](model& m) {
             world& w = make_world(1, 3, 5, 1);
             w.hold(0, 0, w.add_fiber("iw"));
             w.end_time_slice(0);
             w.queue(w.add_fiber("w"));
             strands_of(m, w, 3, ~0u, 0);
             m.strand("detector", [&w] { w.detect(0); });
         },
     .preemptions = 1},
    // A fiber is stopped again while the detector still releases it from the stop before.
    {.name = "release_of_the_next_stop",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 0);
             w.hold(0, 0, w.add_fiber("r"));
             w.be_away(1, w.add_fiber("iisw"));
             strands_of(m, w, 2, ~0u, 0);
             m.strand("releaser", [&w] { w.release_stopped(); });
         },
     .preemptions = 2},
    // A fiber blocks, its processor leaves, and the fiber may be stopped wherever it is, and
    // released. This is the longest program by far.
    {.name = "stop",
     .build =
         [](model& m) {
             world& w = make_world(1, 2, 4, 0);
             w.hold(0, 0, w.add_fiber("bcw"));
             strands_of(m, w, 2, 0, 1);
             m.strand("detector", [&w] { w.detect(0); });
             m.strand("releaser", [&w] { w.release_stopped(); });
         },
     .preemptions = 1},
};

ums::tso::mutation_test all() {
    return {
        {std::begin(programs), std::end(programs)},
        {
#include "hand_off_model_test.inc"
        },
        {
            {"a_released_carrier_stays_in_the_list",
             "whoever takes it off the list sees that it was released, and lets it go on"},
            {"a_claim_does_not_ask_whose_turn_it_is",
             "a carrier with a processor and a fiber whose turn is not `holds` is being stopped: "
             "is_going_on says it too"},
            {"a_relay_wakes_before_it_has_left",
             "nothing of the processor is touched after move(): only ThreadSanitizer minds two "
             "in one context"},
            {"a_stop_without_a_permit",
             "only a fiber at the end of a marked region has neither a processor nor a permit, "
             "and no program here marks one"},
            {"a_fiber_is_stopped_in_its_stop",
             "the model's handler is not interrupted: here nothing comes while one is stopped"},
            {"ownership::try_claim: fetch_or seq_cst",
             "on x86 it is a full fence whatever its order, and the load of the same word that "
             "follows acquires the same"},
            {"ownership::vacate: fetch_or release",
             "whoever vacates gives its claim back next, or leaves: those release"},
            {"turn_word::change: compare_exchange acquire on failure",
             "wait_if_released() goes on to enter() without a processor, where there is a full "
             "fence; the others look again, or touch nothing more"},
            {"carrier_pool::take_or_stop: fetch_add seq_cst",
             "on x86 it is a full fence whatever its order, and who finds the count takes the "
             "lock"},
            {"carrier_pool::begin_waiting: fetch_add release",
             "a look that finds the count and misses the carrier is followed by another"},
            {"carrier_pool::has_stopped: load seq_cst",
             "x86 orders it after join(); idle_set_model_test has the look in histories"},
            {"carrier_pool::release_if_stuck: load acquire",
             "a look that finds the count and misses the carrier is followed by another"},
        }};
}

TEST(hand_off_model_test, loses_nothing) {
    if (under_tsan)
        GTEST_SKIP() << "its builds tell ThreadSanitizer of an order, not the processor "
                        "(ownership::let_go())";
    all().text_is_correct();
}
TEST(hand_off_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(hand_off_model_test, finds_each_order) { all().finds_each_order(); }

}  // namespace
