// SPDX-License-Identifier: MIT
//
// The text of sched/run/park, wake and sched/queue/timer_queue in every execution that C++20
// allows, up to a bound: exactly one of wake-up, deadline and take-aside ends a park, the one that
// continues a fiber sees its saved registers, the fiber sees what that one did, no deadline comes
// after cancel(), and nothing is left in the word.

#include <array>
#include <iterator>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/look_inside.hpp"
#include "internal/modelled/kept.hpp"
#include "internal/modelled/mutants.hpp"

#define base modelled_base
#define sched modelled
#include "sched/fiber/parkable.hpp"

namespace ums::sched {

using tso::kept;
using tso::model;

// A strand.
struct fiber : ums::os::slot_head, parkable {
    explicit fiber(bool stops_its_carrier = true) noexcept : parkable{stops_its_carrier} {}
    kept<fiber*> link;
    // For the proof.
    kept<int> registers{0};                // Saved before the park, read by what makes it ready.
    base::atomic<std::uint32_t> is_ready;  // It is in a queue, and continues.
};

// The deadlines of a processor, of which there are two at most.
namespace timers {

struct timer {
    kept<os::nanoseconds> at{os::never};
    kept<bool> queued{false};
    [[nodiscard]] bool is_queued() const noexcept { return queued; }
};

struct timer_heap {
    std::array<kept<timer*>, 2> all;

    [[nodiscard]] os::nanoseconds next() const noexcept {
        os::nanoseconds least = os::never;
        for (const auto& one : all)
            if (one != nullptr) least = std::min(least, one->at.get());
        return least;
    }
    void add(timer& t) noexcept {
        t.queued = true;
        for (auto& one : all)
            if (one == nullptr) return one.set(&t);
    }
    void remove(timer& t) noexcept {
        t.queued = false;
        for (auto& one : all)
            if (one == &t) one = nullptr;
    }
    timer* pop_expired(os::nanoseconds now) noexcept {
        for (auto& one : all)
            if (timer* const t = one; t != nullptr && t->at <= now) return remove(*t), t;
        return nullptr;
    }
};

}  // namespace timers

bool claim_for(parkable& target, parkable::reason why) noexcept;
void resume(parkable& target) noexcept;

}  // namespace ums::sched

#define os modelled_os
#include "sched/queue/timer_queue.cpp"

namespace ums::sched {

struct carrier_core;
struct after_switch {
    fiber* self;
};
enum class park_kind { internal, user };
enum class trace_wait { user, sleep, library };
inline void trace_wake(int, fiber&, void*) noexcept {}

struct processor {
    enum class place { next };
    int* trace = nullptr;
    timer_queue timers;
    [[nodiscard]] static fiber* pick() noexcept { return nullptr; }
    static void wake_help() noexcept {}
    static void notify_of_deadline() noexcept {}
};
struct search {
    static void tell_watcher(processor&, os::nanoseconds) noexcept {}
};
struct carrier_core {
    kept<processor*> proc;
};

// A carrier that runs the strand's fiber. There are more processors than strands.
struct here {
    static inline carrier_core* all = nullptr;
    carrier_core* const on = all;
    fiber* const self = own();
    static fiber* own() noexcept {
        auto* const f = static_cast<fiber*>(model::running().slot());
        return f->is_fiber ? f : nullptr;
    }
};
inline parkable& plain_thread() noexcept { return *static_cast<fiber*>(model::running().slot()); }
struct announced_wait {
    announced_wait() noexcept {}
};
inline processor& some_processor(carrier_core& c) noexcept { return *c.proc; }

// In a queue, of which the fiber's strand takes it.
inline void make_ready(fiber& f) noexcept {
    if (f.registers != 1) model::running().fail("a fiber continues that is not parked");
    f.registers = 2;
    if (f.is_ready.exchange(1, base::acq_rel) != 0) model::running().fail("a fiber is ready twice");
    os::futex_wake(f.is_ready.address());
}
struct ready {
    static bool at(processor&, fiber& f, processor::place) noexcept { return make_ready(f), false; }
};

template <bool>
struct departure {
    carrier_core* on;
    fiber* self;

    processor* enter() noexcept { return on->proc; }
    void record(processor&, trace_wait, fiber*) noexcept {}
    using action = void(const after_switch&, carrier_core&) noexcept;
    action* then(action* finish) noexcept { return finish; }
    void to(fiber*, action* finish) noexcept {
        self->registers = 1;
        finish({self}, *on);
        while (self->is_ready.exchange(0, base::acquire) == 0) {
            if (model::running().is_over()) return;
            os::futex_wait(self->is_ready, 0);
        }
    }
};
template <class Leave>
auto depart(carrier_core* c, fiber* self, Leave leave) noexcept {
    return leave(departure<false>{c, self});
}
#define UMS_INLINED

using reason = parkable::reason;
#include "sched/run/wake.cpp"

#include "sched/run/park.cpp"

}  // namespace ums::sched

#undef base
#undef sched
#undef os
#undef UMS_INLINED

namespace {

using ums::modelled::fiber;
using ums::modelled::park_kind;
using ums::modelled::reason;
using ums::tso::kept;
using ums::tso::model;

constexpr ums::os::nanoseconds soon = 1;

// A sleeper; others that end its sleep. The wait is published under a lock, as in
// sync/wait_list.hpp.
struct machine {
    ums::modelled::processor processor;
    ums::modelled::carrier_core carrier;
    fiber sleeper{true}, thread{false}, others[2];
    ums::modelled_os::lock lock;
    kept<fiber*> published;  // Guarded by the lock.
    kept<int> gift{0};       // Of the waker to the sleeper.
    kept<int> thanks{0};     // Of the one that unparks it.

    static machine& remade() {
        alignas(machine) static char room[sizeof(machine)];
        machine& s = *new (room) machine;
        s.carrier.proc = &s.processor;
        ums::modelled::here::all = &s.carrier;
        return s;
    }

    static reason park(park_kind kind, ums::os::nanoseconds until) {
        return kind == park_kind::user ? ums::modelled::park_until<park_kind::user>(until)
                                       : ums::modelled::park_until<park_kind::internal>(until);
    }
    // One wait of the library, which has been published.
    void waits(fiber& self, ums::os::nanoseconds until) {
        reason why = park(park_kind::internal, until);
        if (why != reason::wake) {
            lock.acquire();
            const bool is_mine = published == &self;
            published = nullptr;
            lock.release();
            // The wake() is on its way.
            if (!is_mine) why = park(park_kind::internal, ums::os::never);
            if (!is_mine && why != reason::wake) model::running().fail("a park without a reason");
        }
        if (why == reason::wake && gift != 1) model::running().fail("woken by nobody");
        gift = 0;
    }
    // Another one after it, with a deadline.
    void sleeps() {
        if (park(park_kind::internal, soon) != reason::deadline)
            model::running().fail("a wake-up that nobody made");
    }
    void wakes() {
        lock.acquire();
        fiber* const who = published;
        if (who != nullptr) gift = 1;
        published = nullptr;
        lock.release();
        if (who != nullptr) ums::modelled::wake(*who);
    }
    void fires() {
        fiber* list = processor.timers.fire(soon, 1);
        while (list != nullptr) {
            fiber* const f = list;
            list = f->link.get();
            ums::modelled::resume(*f);
        }
    }
    void takes_aside() {
        const std::uint32_t bits = ums::modelled::take_aside(sleeper);
        if (bits == 0) return;
        if (sleeper.registers != 1) model::running().fail("one that is aside runs");
        sleeper.registers = 1;  // Its stack holds still.
        ums::modelled::park_again(sleeper, bits);
    }
};

template <class F>
void strand(model& of, const char* name, fiber& self, F body) {
    of.strand(name, [&self, body] {
        model::running().slot() = &self;
        body();
    });
}

ums::tso::program with(const char* name, void (*build)(model&, machine&), unsigned preemptions = 3,
                       unsigned timeouts = 0) {
    return {.name = name,
            .build =
                [build](model& of) {
                    machine& s = machine::remade();
                    build(of, s);
                    of.at_rest([&s, &of]() -> std::string {
                        // The deadline of the one that sleeps has not come.
                        const bool sleeps = !of.is_done(0);
                        const bool is_timed = s.processor.timers.next() != ums::os::never;
                        if (sleeps && !is_timed && !of.sleeps_for_a_time(0))
                            return "one sleeps for ever";
                        if (!sleeps && is_timed) return "a deadline is left";
                        if (!sleeps &&
                            (of.at(s.sleeper.word.cell()) != 0 || of.at(s.thread.word.cell()) != 0))
                            return "something is left in the word";
                        return "";
                    });
                },
            .timeouts = timeouts,
            .preemptions = preemptions,
            .histories = true,
            .stack_cells = 8};
}

// What the programs have in common. The first strand is the one that waits.
void add_sleeper(model& of, machine& s, fiber& self, ums::os::nanoseconds until,
                 bool sleeps_again = false) {
    s.published = &self;
    strand(of, "sleeper", self, [&s, &self, until, sleeps_again] {
        s.waits(self, until);
        if (sleeps_again) s.sleeps();
    });
}
void add_waker(model& of, machine& s) {
    strand(of, "waker", s.others[0], [&s] { s.wakes(); });
}
void add_clock(model& of, machine& s) {
    strand(of, "clock", s.others[1], [&s] { s.fires(); });
}
void add_aside(model& of, machine& s) {
    strand(of, "aside", s.others[1], [&s] { s.takes_aside(); });
}
void add_unparker(model& of, machine& s) {
    strand(of, "unparker", s.others[1], [&s] {
        s.thanks = 1;
        ums::modelled::unpark(s.sleeper);
    });
}
void is_unparked(machine& s) {
    if (machine::park(park_kind::user, ums::os::never) != reason::wake || s.thanks != 1)
        model::running().fail("a park without a reason");
}

constexpr auto never = ums::os::never;

std::vector<ums::tso::program> programs() {
    return {
        with("a wake-up",
             [](model& of, machine& s) {
                 add_sleeper(of, s, s.sleeper, never);
                 add_waker(of, s);
             }),
        with("a deadline",
             [](model& of, machine& s) {
                 add_sleeper(of, s, s.sleeper, soon);
                 add_clock(of, s);
             }),
        with(
            "a wake-up and a deadline",
            [](model& of, machine& s) {
                add_sleeper(of, s, s.sleeper, soon);
                add_waker(of, s);
                add_clock(of, s);
            },
            2),
        with(
            "a wake-up and a deadline, then another sleep",
            [](model& of, machine& s) {
                add_sleeper(of, s, s.sleeper, soon, true);
                add_waker(of, s);
                add_clock(of, s);
            },
            1),
        with("an unpark",
             [](model& of, machine& s) {
                 strand(of, "sleeper", s.sleeper, [&s] { is_unparked(s); });
                 add_unparker(of, s);
             }),
        with(
            "a wake-up beside an unpark",
            [](model& of, machine& s) {
                s.published = &s.sleeper;
                strand(of, "sleeper", s.sleeper, [&s] {
                    s.waits(s.sleeper, never);
                    is_unparked(s);
                });
                add_waker(of, s);
                add_unparker(of, s);
            },
            2),
        with(
            "a wake-up of one that is taken aside",
            [](model& of, machine& s) {
                add_sleeper(of, s, s.sleeper, never);
                add_waker(of, s);
                add_aside(of, s);
            },
            2),
        with(
            "a deadline of one that is taken aside",
            [](model& of, machine& s) {
                add_sleeper(of, s, s.sleeper, soon);
                strand(of, "clock", s.others[0], [&s] { s.fires(); });
                add_aside(of, s);
            },
            2),
        with("a thread's wake-up",
             [](model& of, machine& s) {
                 add_sleeper(of, s, s.thread, never);
                 add_waker(of, s);
             }),
        with(
            "a thread's wake-up and deadline",
            [](model& of, machine& s) {
                add_sleeper(of, s, s.thread, soon);
                add_waker(of, s);
            },
            3, 1),
    };
}

ums::tso::mutation_test all() {
    return {programs(),
            {
#include "park_model_test.inc"
            },
            {{"claim_for: compare_exchange acq_rel to acquire",
              "a deadline has nothing to publish, and a stop is seen by its token, which is not "
              "here"}},
            {"sched/run/park.cpp", "sched/run/wake.cpp", "sched/queue/timer_queue.cpp"}};
}

TEST(park_model_test, one_thing_ends_a_park) { all().text_is_correct(); }
TEST(park_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(park_model_test, its_orders_are_needed) { all().finds_each_order(); }

}  // namespace
