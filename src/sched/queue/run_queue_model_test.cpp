// SPDX-License-Identifier: MIT
//
// The text of sched/queue/run_queue and fiber_ring, under carry/ownership, with the theft of
// sched/run/search.cpp, in every execution that C++20 allows, up to a bound: each fiber is in one
// queue or runs once, no slot is used that is gone, and what is never empty never looks empty.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/look_inside.hpp"
#include "internal/modelled/kept.hpp"
#include "internal/modelled/mutants.hpp"
#include "support/scale.hpp"

namespace ums::modelled {

using tso::kept;
using tso::model;

class processor;

enum class wait_kind { none, scope, future };
struct wait_record {
    static constexpr unsigned kind_shift = 0;
};

struct fiber {
    kept<fiber*> link;
    kept<bool> is_new, is_pinned;
    kept<processor*> pinned_to;
    std::uint64_t spawner = 0;
    struct {
        kept<unsigned> what;
    } waits;
    struct {
        void* sp = nullptr;
    } context;
    // For the proof.
    kept<bool> is_ready;
};

// A place in a ring.
struct slot : kept<fiber*> {
    using kept::operator=;
    void swap(slot& other) noexcept {
        fiber* const mine = get();
        *this = other.get();
        other = mine;
    }
};

}  // namespace ums::modelled

namespace ums::modelled_os {

inline constexpr std::size_t page_bytes = 2 * sizeof(void*);
void* map(std::size_t bytes) noexcept;
void unmap(modelled::slot* at, std::size_t bytes) noexcept;

}  // namespace ums::modelled_os

#define base modelled_base
#define os modelled_os
#define sched modelled
#define carry modelled_carry
#include "carry/ownership.cpp"
#include "carry/ownership.hpp"
#include "sched/queue/fiber_ring.cpp"
#include "sched/queue/fiber_ring.hpp"
#include "sched/queue/inbox.hpp"
#include "sched/queue/run_queue.cpp"
#include "sched/queue/run_queue.hpp"
#undef os
#undef carry

namespace ums::sched {

constexpr std::uint32_t most_stolen = 8192;

struct carrier {
    carrier() noexcept {
        ownership.reset(true);
        is_made = true;
    }
    modelled_carry::ownership ownership;
    kept<bool> is_made{false};
};

enum class trace_event { steal };
struct trace_ring {
    void write(trace_event, int, std::uint32_t, unsigned) noexcept {}
};

// The part of sched/run/processor.hpp that a theft needs.
class processor {
public:
    [[nodiscard]] carrier* holder() const noexcept { return holder_.load(base::acquire); }
    [[nodiscard]] bool is_held_by(const carrier& c) const noexcept {
        return holder_.load(base::relaxed) == &c;
    }
    void set_holder(carrier* c) noexcept { holder_.store(c, base::release); }
    [[nodiscard]] bool looks_busy() const noexcept { return ready.looks_busy(); }
    [[nodiscard]] unsigned index() const noexcept { return 0; }
    void take_in(fiber* list) noexcept {
        while (list != nullptr) {
            fiber* const f = list;
            list = f->link.get();
            ready.push_back(*f);
        }
    }

    trace_ring* trace = nullptr;
    run_queue ready;
    inbox scattered;
    struct {
        struct {
            void add(std::uint32_t) noexcept {}
        } steals, stolen;
    } counters;
    std::array<slot, 16>* room = nullptr;  // Where its rings may lie.
    std::array<bool, 4> is_used{};

private:
    base::atomic<carrier*> holder_;
};

struct search {
    static bool rob(processor& thief, processor& victim, bool stranded_too) noexcept;
};

#include "sched/run/search.cpp"

}  // namespace ums::sched

#undef base
#undef sched

namespace {

using ums::modelled::carrier;
using ums::modelled::fiber;
using ums::modelled::processor;
using ums::modelled::search;
using ums::modelled::slot;
using ums::tso::model;

using queue = ums::modelled::run_queue;

// Processors, of which the first one's fibers are stolen, and carriers, of which the third is a
// spare.
struct machine {
    carrier carriers[4];
    processor processors[3];
    std::array<slot, 16> rooms[2];
    fiber fibers[6];

    // Everything lies at the same place in each execution. It is not destroyed, because its words
    // disappeared with the execution.
    static machine& remade() {
        alignas(machine) static std::byte room[sizeof(machine)];
        here = new (room) machine;
        return *here;
    }
    static inline machine* here = nullptr;
    static inline processor* made_for = nullptr;  // Whose ring grows outside the strands.

    machine() {
        for (std::size_t i : {0, 1, 2}) processors[i].set_holder(&carriers[i == 2 ? 3 : i]);
        for (std::size_t i : {0, 1}) {
            processors[i].room = &rooms[i];
            fibers[i].spawner = 1;
        }
        carriers[2].ownership.vacate();
        for (fiber& f : fibers) f.context.sp = &f;  // A pop prefetches from there.
    }

    fiber& ready(unsigned n) {
        if (fibers[n].is_ready) model::running().fail("a fiber is made ready twice");
        fibers[n].is_ready = true;
        return fibers[n];
    }
    void pin(unsigned n, unsigned p) {
        fibers[n].pinned_to = &processors[p];
        fibers[n].is_pinned = true;
    }
    // The fiber runs on the strand's processor.
    fiber* run(fiber* f) {
        if (f == nullptr) return nullptr;
        model& m = model::running();
        if (!f->is_ready) m.fail("a fiber runs twice");
        if (m.is_on_strand() && f->pinned_to != nullptr && f->pinned_to != m.slot())
            m.fail("a pinned fiber was stolen");
        f->is_ready = false;
        f->is_new = false;
        return f;
    }
    // A strand that is the carrier `c`, and works on the processor `p` in so many sections.
    template <class... F>
    void works(unsigned c, unsigned p, F... sections) {
        model::running().slot() = &processors[p];
        (section(c, p, sections), ...);
    }
    template <class F>
    void section(unsigned c, unsigned p, F body) {
        if (!carriers[c].ownership.enter()) return;
        body(processors[p].ready);
        carriers[c].ownership.leave();
    }
    // A section that is a theft.
    void robs(unsigned thief, bool stranded_too) {
        processor& self = processors[thief];
        model::running().slot() = &self;
        if (!carriers[thief].ownership.enter()) return;
        if (search::rob(self, processors[1 - thief], stranded_too)) run(self.ready.pop());
        carriers[thief].ownership.leave();
    }

    // A strand that takes the first processor to a carrier that is not made yet, and works there:
    // as hand_off::move(). The first carrier may get another processor.
    void hands_off(bool gets_another) {
        model::running().slot() = &processors[0];
        if (!carriers[0].ownership.try_claim()) return;
        carriers[2].is_made = true;
        move(0, 0, 2);
        if (gets_another) move(2, 3, 0);
        carriers[0].ownership.unclaim();
        section(2, 0, [this](queue& q) { run(q.pop()); });
    }
    void move(unsigned p, unsigned from, unsigned to) {
        processors[p].set_holder(&carriers[to]);
        carriers[from].ownership.vacate();
        carriers[to].ownership.occupy();
    }

    // What is wrong when nothing moves any more.
    [[nodiscard]] std::string verdict() {
        std::array<unsigned, 6> queued{};
        for (processor& p : processors) {
            made_for = &p;
            p.take_in(p.scattered.take_all());
            for (bool pinned : {false, true})
                while (fiber* const f = pinned ? p.ready.pop_pinned() : p.ready.pop()) {
                    if (f->pinned_to.get() != nullptr && f->pinned_to.get() != &p)
                        return "a pinned fiber was stolen";
                    if (++queued[static_cast<std::size_t>(f - fibers)] > 1)
                        return "a fiber is in two queues";
                }
        }
        for (std::size_t i = 0; i < queued.size(); ++i)
            if (fibers[i].is_ready != (queued[i] == 1)) return "a fiber was lost";
        return "";
    }
};

}  // namespace

void* ums::modelled_os::map(std::size_t bytes) noexcept {
    constexpr std::size_t sizes[] = {2, 2, 4, 8};
    model& m = model::running();
    auto* const p = m.is_on_strand() ? static_cast<processor*>(m.slot()) : machine::made_for;
    for (std::size_t i = 0, at = 0; i < std::size(sizes); at += sizes[i++])
        if (sizes[i] * sizeof(void*) == bytes && !std::exchange(p->is_used[i], true))
            return p->room->data() + at;
    return nullptr;
}
void ums::modelled_os::unmap(modelled::slot* at, std::size_t bytes) noexcept {
    std::for_each(at, at + bytes / sizeof(void*), [](modelled::slot& s) { s.end(); });
}

namespace {

// What the programs have in common. The owner is the first processor's carrier, a thief the second
// one's.
ums::tso::program with(const char* name, void (*build)(model&, machine&),
                       unsigned preemptions = 3) {
    return {.name = name,
            .build =
                [build](model& of) {
                    machine& s = machine::remade();
                    machine::made_for = &s.processors[0];
                    build(of, s);
                    of.at_rest([&s, &of] {
                        return of.are_all_done() ? s.verdict() : "one waits for ever";
                    });
                },
            .preemptions = preemptions,
            .histories = true};
}
void add_thief(model& of, machine& s, bool stranded_too = false) {
    of.strand("thief", [&s, stranded_too] { s.robs(1, stranded_too); });
}
template <class... F>
void add_owner(model& of, machine& s, F... sections) {
    of.strand("owner", [&s, sections...] { s.works(0, 0, sections...); });
}
// A processor that becomes idle, and looks once more: sched/run/search.cpp.
void add_idler(model& of, machine& s) {
    of.strand("idler", [&s] {
        ums::modelled_os::heavy_fence();
        if (!s.processors[0].looks_busy()) model::running().fail("it looks empty");
    });
}
// Before the strands run: these wait in the first processor's ring.
void wait_in_ring(machine& s, unsigned first, unsigned n) {
    for (unsigned i = first; i != first + n; ++i) s.processors[0].ready.push_back(s.ready(i));
}
// The same: the fiber that runs has made so many.
void make_new(machine& s, unsigned first, unsigned n) {
    queue& q = s.processors[0].ready;
    for (unsigned i = first; i != first + n; ++i) {
        s.fibers[i].is_new = true;
        q.push_new(s.ready(i));
    }
}
// The same: a walk whose front part is so many.
void walk(machine& s, unsigned first, unsigned n) {
    make_new(s, first, n + 1);
    s.processors[0].ready.call_new();
    s.run(s.processors[0].ready.pop());
}

std::vector<ums::tso::program> programs() {
    return {
        with("the owner pushes and pops",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 1);
                 add_owner(
                     of, s, [&s](queue& q) { q.push_back(s.ready(1)); },
                     [&s](queue& q) { s.run(q.pop()); });
                 add_thief(of, s);
             }),
        with("the owner yields",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 2);
                 s.processors[0].ready.start_round(2);
                 add_owner(of, s, [&s](queue& q) {
                     if (fiber* next = q.rotate(s.ready(2)))
                         s.run(next);
                     else
                         q.push_back(s.fibers[2]);
                 });
                 add_thief(of, s);
             }),
        with("the ring grows",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 2);
                 add_owner(of, s, [&s](queue& q) {
                     q.push_back(s.ready(2));
                     s.run(q.pop());
                 });
                 add_thief(of, s);
             }),
        with("a thief takes the run-next slot",
             [](model& of, machine& s) {
                 add_owner(
                     of, s, [&s](queue& q) { q.push_next(s.ready(0)); },
                     [&s](queue& q) {
                         q.push_next(s.ready(1));
                         s.run(q.pop());
                     });
                 add_thief(of, s, true);
             }),
        with("a round ends",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 1);
                 s.processors[0].ready.push_next(s.ready(1));
                 add_owner(of, s, [&s](queue& q) {
                     q.end_run_next();
                     s.run(q.pop());
                 });
                 add_thief(of, s, true);
             }),
        with("a thief leaves what is pinned",
             [](model& of, machine& s) {
                 s.pin(0, 0);
                 s.pin(1, 0);
                 s.processors[0].ready.start_round(2);
                 wait_in_ring(s, 2, 1);
                 add_owner(
                     of, s,
                     [&s](queue& q) {
                         fiber* const next = q.rotate(s.ready(1));
                         if (next == nullptr) q.push_back(s.fibers[1]);
                         s.run(next != nullptr ? next : q.pop());
                     },
                     [&s](queue& q) { q.push_next(s.ready(0)); });
                 add_thief(of, s, true);
             }),
        with("a fiber calls those it has made",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 1);
                 make_new(s, 1, 3);
                 add_owner(of, s, [&s](queue& q) {
                     q.call_new();
                     s.run(q.pop());
                     s.run(q.pop());
                 });
                 add_thief(of, s);
             }),
        with("a thief meets a walk",
             [](model& of, machine& s) {
                 walk(s, 0, 3);
                 add_owner(of, s, [&s](queue& q) {
                     s.run(q.pop());
                     q.push_caller(s.ready(4));
                 });
                 add_thief(of, s);
             }),
        with("a thief takes of a walk and of those behind it",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 2);
                 s.fibers[2].spawner = 2;
                 walk(s, 2, 3);
                 add_owner(of, s, [&s](queue& q) { s.run(q.pop()); });
                 add_thief(of, s);
             }),
        with("one behind a walk has a turn",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 2);
                 walk(s, 2, 1);
                 add_owner(of, s, [&s](queue& q) {
                     q.give_turn();
                     s.run(q.pop());
                 });
                 add_thief(of, s);
             }),
        with("one that is new leaves a walk",
             [](model& of, machine& s) {
                 queue& ready = s.processors[0].ready;
                 ready.push_caller(s.ready(4));
                 walk(s, 0, 2);
                 ready.give_turn();
                 for (int i = 0; i < 3; ++i) {
                     ready.start_round(2);
                     while (!ready.count_switch()) continue;
                 }
                 add_owner(of, s, [&s](queue& q) {
                     q.give_turn();
                     s.run(q.pop());
                 });
                 add_thief(of, s);
             }),
        with(
            "a thief takes what was scattered",
            [](model& of, machine& s) {
                of.strand("outside", [&s] { s.processors[0].scattered.push(s.ready(0)); });
                s.processors[0].scattered.push(s.ready(1));
                add_owner(of, s, [&s](queue& q) {
                    s.processors[0].take_in(s.processors[0].scattered.take_all());
                    s.run(q.pop());
                });
                add_thief(of, s, true);
            },
            2),
        with("two rob each other",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 2);
                 for (unsigned i : {0u, 1u})
                     of.strand("thief " + std::to_string(i), [&s, i] { s.robs(i, false); });
             }),
        with("the processor goes to another carrier",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 1);
                 of.strand("detector", [&s] { s.hands_off(true); });
                 add_thief(of, s);
             }),
        with(
            "it goes while its carrier pops",
            [](model& of, machine& s) {
                wait_in_ring(s, 0, 1);
                add_owner(of, s, [&s](queue& q) { s.run(q.pop()); });
                of.strand("detector", [&s] { s.hands_off(false); });
                add_thief(of, s);
            },
            1),
        with("a yield never looks empty",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 1);
                 s.processors[0].ready.start_round(2);
                 add_owner(of, s, [&s](queue& q) { s.run(q.rotate(s.ready(1))); });
                 add_idler(of, s);
             }),
        with("a call never looks empty",
             [](model& of, machine& s) {
                 make_new(s, 0, 3);
                 add_owner(of, s, [](queue& q) { q.call_new(); });
                 add_idler(of, s);
             }),
        with("a turn never looks empty",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 1);
                 walk(s, 2, 1);
                 add_owner(of, s, [](queue& q) { q.give_turn(); });
                 add_idler(of, s);
             }),
        with("a theft never makes the rest look empty",
             [](model& of, machine& s) {
                 wait_in_ring(s, 0, 3);
                 add_thief(of, s);
                 add_idler(of, s);
             }),
    };
}

ums::tso::mutation_test all() {
    return {programs(),
            {
#include "run_queue_model_test.inc"
            },
            {}};
}

TEST(run_queue_model_test, each_fiber_is_in_one_queue) {
    if (under_tsan)
        GTEST_SKIP() << "its builds tell ThreadSanitizer of an order, not the processor "
                        "(ownership::let_go())";
    all().text_is_correct();
}
TEST(run_queue_model_test, finds_each_mutant) { all().finds_each_mutant(); }

}  // namespace
