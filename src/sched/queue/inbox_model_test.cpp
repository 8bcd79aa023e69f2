// SPDX-License-Identifier: MIT
//
// The text of sched/queue/inbox and of sched/policies/mpsc_list in every execution that C++20
// allows, up to a bound.

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/cache_line.hpp"
#include "base/look_inside.hpp"
#include "internal/tso_model.hpp"
#include "sched/fiber/fiber.hpp"
#include "support/scale.hpp"

namespace ums::modelled {

struct fiber {
    modelled_base::owned<fiber*> link;
    tso::checked<int> payload{0};  // Written before the push, read after the take.
};

}  // namespace ums::modelled

#define base modelled_base
#define os modelled_os
#define sched modelled
#include "sched/policies/mpsc_list.hpp"
#include "sched/queue/inbox.hpp"
#undef base
#undef os
#undef sched

namespace {

using ums::modelled::fiber;
using ums::tso::model;

struct program {
    int pushers = 2, each = 1;
    int takers = 1, takes = 2;  // Of each taker.
};

// One way to queue and to take, for both units.
struct by_inbox {
    ums::modelled::inbox queue;
    void push(fiber& f) { queue.push(f); }
    template <class F>
    void take(F got) {
        for (fiber* f = queue.take_all(); f != nullptr;) {
            fiber* const next = f->link.get();
            got(*f);
            f = next;
        }
    }
};
struct by_list {
    ums::modelled::mpsc_list queue;
    void push(fiber& f) { queue.push(f); }
    template <class F>
    void take(F got) {
        if (fiber* const f = queue.pop()) got(*f);
    }
};

template <class Queue>
struct machine {
    explicit machine(const program& p) : all(static_cast<std::size_t>(p.pushers * p.each)) {}

    Queue queue;
    std::vector<fiber> all;
    model::cell taken = model::running().make(0);
};

template <class Queue>
model::report explore(const program& p, model& m) {
    m.histories = true;
    m.checks_orders = true;
    return m.explore([&p](model& of) {
        auto s = std::make_shared<machine<Queue>>(p);
        for (int t = 0; t < p.pushers; ++t)
            of.strand("pusher", [s, &p, t] {
                for (int i = 0; i < p.each; ++i) {
                    fiber& f = s->all[static_cast<std::size_t>(t * p.each + i)];
                    f.payload = 1;
                    s->queue.push(f);
                }
            });
        const auto got = [s, &of](fiber& f) {
            if (f.payload != 1) of.fail("taken twice, or before it was pushed");
            f.payload = 2;
            ++of.at(s->taken);
        };
        for (int t = 0; t < p.takers; ++t)
            of.strand("taker", [s, &p, got] {
                for (int i = 0; i < p.takes; ++i) s->queue.take(got);
            });
        of.at_rest([s, &of]() -> std::string {
            // What is left is found, because nobody pushes any more.
            std::size_t left = 0;
            for (std::size_t i = 0; i <= s->all.size(); ++i) s->queue.take([&](fiber&) { ++left; });
            return of.at(s->taken) + left == s->all.size() ? "" : "one was lost";
        });
    });
}

template <class Queue>
void is_correct(const program& p, unsigned preemptions) {
    model m;
    m.preemptions = preemptions;
    const auto r = explore<Queue>(p, m);
    EXPECT_EQ(r.error, "");
    std::cout << r.states << " states, " << r.executions << " executions\n";
}

// Makes each order relaxed in turn: returns the names of those that no execution of the program
// needs.
template <class Queue>
std::vector<std::string> not_needed(const program& p, unsigned preemptions) {
    std::map<std::string, ums::tso::site> sites;
    {
        model m;
        m.preemptions = preemptions;
        m.sites = &sites;
        EXPECT_EQ(explore<Queue>(p, m).error, "");
    }
    std::vector<std::string> names;
    for (const auto& [key, site] : sites) {
        model m;
        m.preemptions = preemptions;
        m.weakened = &site;
        m.weakened_to = std::memory_order_relaxed;
        if (explore<Queue>(p, m).error.empty()) names.push_back(site.name());
    }
    return names;
}

TEST(inbox_model_test, what_is_pushed_is_taken_once) {
    is_correct<by_inbox>({}, 3);
    is_correct<by_inbox>({.each = 2}, 2);
    is_correct<by_inbox>({.takers = 2, .takes = 1}, 2);
}

TEST(inbox_model_test, what_is_pushed_is_popped_once) {
    is_correct<by_list>({}, 3);
    is_correct<by_list>({.each = 2, .takes = 3}, 2);
    is_correct<by_list>({.takers = 2}, 2);
}

TEST(inbox_model_test, its_orders_are_needed) {
    // The look at an empty inbox is for the idle set, which is not in the program.
    EXPECT_EQ(not_needed<by_inbox>({}, 3), std::vector<std::string>{});
}

// Five are not needed in this program. The list's end is published twice, by back_ and by first_,
// so each covers the others; and that back_ is seq_cst is for the idle set, which is not here.
TEST(inbox_model_test, orders_of_the_list_are_needed) {
    const std::vector<std::string> covered{
        "mpsc_list::push: exchange seq_cst", "mpsc_list::push: store release",
        "mpsc_list::pop: load acquire", "mpsc_list::pop: compare_exchange acq_rel",
        "mpsc_list::looks_empty: load seq_cst"};
    EXPECT_EQ(not_needed<by_list>({.takers = 2, .takes = 1}, 2), covered);
}

}  // namespace
