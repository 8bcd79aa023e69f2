// SPDX-License-Identifier: MIT
//
// The text of sched/run/idle_set, with the two sides of its protocol around it as in
// sched/run/search.cpp and sched/run/processor.hpp, run under every execution that x86-TSO allows:
// when nothing moves any more, no work is left while a processor is idle.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "internal/tso_model.hpp"
#include "os/lock.hpp"
#include "sched/run/processor.hpp"  // The real one: idle_set.cpp must not include it again.
#include "support/scale.hpp"

namespace ums::modelled {

// The part of a processor that the idle set needs.
class processor {
public:
    modelled_base::owned<bool> is_idle;
    processor* next_idle = nullptr;  // Guarded by the idle set's lock.
};

}  // namespace ums::modelled

#define base modelled_base
#define os modelled_os
#define sched modelled
#include "sched/run/idle_set.hpp"
// Includes its functions, too:
#include "sched/run/idle_set.cpp"
#undef base
#undef os
#undef sched

namespace {

using ums::modelled_base::atomic;
using ums::tso::model;
namespace base = ums::base;

struct program {
    int pushes = 1;          // By a running processor into its own queue: plain stores.
    int pushes_outside = 0;  // By a plain thread into an inbox: read-modify-writes.
    int idlers = 1;          // Processors that look for work.
    int pushes_inside = 0;   // By idlers that found something: plain stores, one each.
    bool asymmetric = true;
    bool passes_torch = true;  // The last searcher looks again when it has found something.
    // One processor: it looks for what came from outside without a fence.
    bool is_lone = false;
    // The order of the looks for what came from outside.
    std::memory_order look = std::memory_order_seq_cst;
};

struct idler : ums::modelled::processor {
    atomic<std::uint32_t> notified;

    void wait() {
        if (notified.exchange(0, base::acquire) != 0) return;
        ums::modelled_os::futex_wait(notified, 0);
        notified.exchange(0, base::acquire);
    }
    void notify() {
        if (notified.exchange(1, base::acq_rel) == 0)
            ums::modelled_os::futex_wake(notified.address());
    }
};

struct machine {
    explicit machine(const program& p)
        : chosen{p},
          work(static_cast<std::size_t>(p.pushes + p.pushes_outside + p.pushes_inside)),
          idlers(static_cast<std::size_t>(p.idlers)) {}

    const program chosen;
    ums::modelled::idle_set idle;
    std::vector<atomic<int>> work;  // One place for each piece.
    std::vector<idler> idlers;
    atomic<int> pushed_inside;  // A place for each idler that finds something.

    // Processors there are, besides `running` of the idlers that are neither idle nor search.
    [[nodiscard]] bool others_run(unsigned running) const {
        const auto seen = idle.look();
        const auto active = static_cast<unsigned>(chosen.idlers + (chosen.pushes > 0 ? 1 : 0));
        return active > seen.idle + seen.searching + running;
    }
    void push_inside() {
        if (chosen.pushes_inside == 0) return;
        const int n = pushed_inside.fetch_add(1, base::relaxed);
        if (n < chosen.pushes_inside)
            push(static_cast<std::size_t>(chosen.pushes + chosen.pushes_outside + n));
    }

    // The light side: processor::wake_help().
    void push(std::size_t place) {
        work[place].store(1, base::relaxed);
        ums::modelled_base::compiler_fence();
        if (!chosen.asymmetric) ums::modelled_base::full_fence();
        if (idle.look().idle == 0 || idle.look().searching != 0) return;
        wake_one();
    }
    // cluster::make_ready_from_outside()
    void push_from_outside(std::size_t place) {
        work[place].exchange(1, base::seq_cst);
        ums::modelled_base::full_fence();
        if (idle.wants_waking()) wake_one();
    }
    void wake_one() {
        if (auto* p = static_cast<idler*>(idle.claim_any(false))) p->notify();
    }

    bool take() {
        for (atomic<int>& w : work)
            if (w.load(base::relaxed) != 0 && w.exchange(0, base::acquire) != 0) return true;
        return false;
    }
    // Inboxes are read sequentially consistently, run queues relaxed.
    bool looks_busy() {
        for (std::size_t i = 0; i < work.size(); ++i) {
            const bool is_inbox =
                i >= static_cast<std::size_t>(chosen.pushes) &&
                i < static_cast<std::size_t>(chosen.pushes + chosen.pushes_outside);
            if (work[i].load(is_inbox ? chosen.look : base::relaxed) != 0) return true;
        }
        return false;
    }
    // search::find(), search::stop_searching()
    void find_work(idler& self) {
        bool searching = false;
        model& m = model::running();
        while (!m.is_over()) {
            m.forget(searching);
            if (!searching) {
                idle.start_searching();
                searching = true;
            }
            if (take()) {
                if (idle.stop_searching() && chosen.passes_torch && idle.look().idle != 0) {
                    if (others_run(1)) ums::modelled_os::heavy_fence();
                    if (looks_busy()) wake_one();
                }
                searching = false;
                push_inside();
                // The idler runs what it took, for as long as all the others together.
                while (chosen.idlers > 1 && !m.is_over()) m.stay();
                continue;
            }
            m.forget(2);
            idle.join(self);
            m.forget(3);
            if (!chosen.is_lone && others_run(0)) ums::modelled_os::heavy_fence();
            m.forget(4);
            if (!looks_busy()) {
                m.forget(5);
                self.wait();
            }
            m.forget(6);
            idle.quit(self);
        }
    }
};

model::report explore(const program& p, model& m) {
    m.without_heavy_fence = m.without_heavy_fence || !p.asymmetric;
    m.releases_locks_by_stores = true;  // A processor looks for work after it joined the set.
    return m.explore([&p](model& of) {
        auto s = std::make_shared<machine>(p);
        if (p.pushes > 0)
            of.strand("producer", [s, &p] {
                for (int i = 0; i < p.pushes; ++i) s->push(static_cast<std::size_t>(i));
            });
        if (p.pushes_outside > 0)
            of.strand("outside", [s, &p] {
                for (int i = 0; i < p.pushes_outside; ++i)
                    s->push_from_outside(static_cast<std::size_t>(p.pushes + i));
            });
        for (idler& i : s->idlers) of.strand("idler", [s, &i] { s->find_work(i); });
        of.at_rest([s, &of]() -> std::string {
            for (auto& w : s->work)
                if (of.at(w.cell()) != 0) return "work is stranded";
            return "";
        });
    });
}

void is_correct(const program& p) {
    model m;
    const auto r = explore(p, m);
    EXPECT_EQ(r.error, "");
    std::cout << r.states << " states, " << r.executions << " executions\n";
}

TEST(idle_set_model_test, one_idler_finds_what_is_pushed) {
    is_correct({.pushes = 2, .idlers = 1});
}

TEST(idle_set_model_test, one_idler_finds_what_is_pushed_without_membarrier) {
    is_correct({.pushes = 2, .idlers = 1, .asymmetric = false});
}

TEST(idle_set_model_test, one_idler_finds_what_comes_from_outside) {
    is_correct({.pushes = 1, .pushes_outside = 1, .idlers = 1});
}

// Each runs one piece and does not come back, so the other must be woken for the second.
TEST(idle_set_model_test, two_idlers_share_two_pieces) {
    is_correct({.pushes = scaled(2, 1), .idlers = 2});
}

TEST(idle_set_model_test, two_idlers_share_what_comes_from_outside) {
    is_correct({.pushes = 0, .pushes_outside = scaled(2, 1), .idlers = 2});
}

// In C++20's memory, where a load may read an old value.
void is_correct_in_histories(const program& p) {
    model m;
    m.histories = true;
    m.preemptions = static_cast<unsigned>(scaled(3, 2));
    const auto r = explore(p, m);
    EXPECT_EQ(r.error, "");
    std::cout << r.states << " states, " << r.executions << " executions\n";
}

TEST(idle_set_model_test, one_idler_in_histories) {
    is_correct_in_histories({.pushes = 2, .idlers = 1});
    is_correct_in_histories({.pushes = 2, .idlers = 1, .asymmetric = false});
    is_correct_in_histories({.pushes = 1, .pushes_outside = 1, .idlers = 1});
}

// What comes from outside was made visible by a read-modify-write and a fence. After join() a load
// of another word is ordered only if it is sequentially consistent (search::must_look_again()).
TEST(idle_set_model_test, a_lone_idler_needs_no_fence_in_histories) {
    is_correct_in_histories({.pushes = 0, .pushes_outside = 2, .is_lone = true});
    for (const std::memory_order weaker : {base::relaxed, base::acquire}) {
        model m;
        m.histories = true;
        m.preemptions = 3;
        EXPECT_TRUE(explore({.pushes = 0, .pushes_outside = 1, .is_lone = true, .look = weaker}, m)
                        .error.starts_with("work is stranded"));
    }
}

TEST(idle_set_model_test, two_idlers_in_histories) {
    is_correct_in_histories({.pushes = scaled(2, 1), .idlers = 2});
    is_correct_in_histories({.pushes = 0, .pushes_outside = scaled(2, 1), .idlers = 2});
}

// The second runs the first's piece, and what it pushes then is the first's: it has read a change
// of the set's word that came after the first one joined, or the first one sees it run.
TEST(idle_set_model_test, what_a_former_idler_pushes_is_found_without_a_fence_where_nobody_ran) {
    is_correct({.pushes = 0, .pushes_outside = 1, .idlers = 2, .pushes_inside = 1});
    is_correct_in_histories({.pushes = 0, .pushes_outside = 1, .idlers = 2, .pushes_inside = 1});
}

// Shows that the search would find a mistake.
TEST(idle_set_model_test, the_heavy_fence_is_needed) {
    model m;
    m.without_heavy_fence = true;
    EXPECT_TRUE(explore({.pushes = 1, .idlers = 1}, m).error.starts_with("work is stranded"));
}

TEST(idle_set_model_test, the_full_fence_is_needed_without_membarrier) {
    model m;
    m.without_full_fence = true;
    const program p{.pushes = 1, .idlers = 1, .asymmetric = false};
    EXPECT_TRUE(explore(p, m).error.starts_with("work is stranded"));
}

TEST(idle_set_model_test, the_last_searcher_must_pass_the_torch) {
    model m;
    const program p{.pushes = 0, .pushes_outside = 2, .idlers = 2, .passes_torch = false};
    EXPECT_TRUE(explore(p, m).error.starts_with("work is stranded"));
}

}  // namespace
