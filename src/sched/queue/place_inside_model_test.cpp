// SPDX-License-Identifier: MIT
//
// The text of sched/queue/place_inside, with its waiters around it as in sched/queue/driver.cpp,
// run under every execution that x86-TSO allows: when nothing moves any more, no driver stands by
// while the place is empty.
#include <cstddef>
#include <iostream>
#include <map>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "internal/tso_model.hpp"
#include "os/lock.hpp"

#define base modelled_base
#define os modelled_os
#define sched modelled
#include "sched/queue/place_inside.hpp"
#undef base
#undef os
#undef sched

namespace {

using ums::tso::model;
namespace base = ums::base;

// The part of a driver that the place needs.
struct driver {
    void notify() noexcept {
        if (state.exchange(1, base::acq_rel) == 0) ums::modelled_os::futex_wake(state.address());
    }

    ums::modelled_base::atomic<std::uint32_t> state;
    driver* next_standby_ = nullptr;
    bool is_standby_ = false;
    bool is_inside = false;  // For the proof.
};

struct program {
    int waiters = 1;  // They take the place and stay.
    int pollers = 1;  // They take it and leave it at once.
    int polls = 1;    // Of each poller.
    bool looks_again = true;
};

struct machine {
    // At the same place in each execution, because the place holds a driver's address, which the
    // search compares with those of earlier executions.
    static machine& make(const program& p) {
        static_assert(std::is_trivially_destructible_v<machine>);
        alignas(machine) static std::byte memory[sizeof(machine)];
        return *new (memory) machine{p};
    }
    explicit machine(const program& p)
        : waiters{all, static_cast<std::size_t>(p.waiters)},
          pollers{all + p.waiters, static_cast<std::size_t>(p.pollers)} {}

    ums::modelled::place_inside<driver> place;
    driver all[3];
    std::span<driver> waiters, pollers;

    // driver::wait(), and the loop of the idle processor around it.
    void wait_inside(driver& self, bool looks_again) {
        model& m = model::running();
        while (!m.is_over()) {
            m.forget(1);
            if (place.take(self)) {
                self.is_inside = true;
                m.stay();
                return;
            }
            place.stand_by(self);
            if (!looks_again || place.is_taken()) {
                ums::modelled_os::futex_wait(self.state, 0);
                self.state.exchange(0, base::acquire);
            }
            place.stand_down(self);
        }
    }
    void poll(driver& self) {
        if (place.take(self)) place.leave(self);
    }
};

model::report explore(const program& p, model& m) {
    m.releases_locks_by_stores = true;  // A standby looks at the place after it released the lock.
    return m.explore([&p](model& of) {
        machine& s = machine::make(p);
        for (driver& d : s.waiters)
            of.strand("waiter", [&s, &d, &p] { s.wait_inside(d, p.looks_again); });
        for (driver& d : s.pollers)
            of.strand("poller", [&s, &d, &p, &of] {
                for (int i = 0; i < p.polls; ++i) {
                    of.forget(static_cast<model::value>(i));
                    s.poll(d);
                }
            });
        of.at_rest([&s]() -> std::string {
            for (const driver& d : s.waiters)
                if (d.is_inside) return "";
            return "the place is empty, and all stand by";
        });
    });
}

void is_correct(const program& p) {
    model m;
    const auto r = explore(p, m);
    EXPECT_EQ(r.error, "");
    std::cout << r.states << " states, " << r.executions << " executions\n";
}

void is_wrong(const program& p, model& m) {
    const std::string error = explore(p, m).error;
    EXPECT_TRUE(error.starts_with("the place is empty")) << error;
}

TEST(place_inside_model_test, who_polls_leaves_no_standby_behind) { is_correct({.polls = 2}); }

TEST(place_inside_model_test, nor_do_two) { is_correct({.pollers = 2}); }

TEST(place_inside_model_test, one_of_two_standbys_gets_the_place) { is_correct({.waiters = 2}); }

// In C++20's memory, where a load may read an old value.
TEST(place_inside_model_test, no_standby_is_left_behind_in_histories) {
    for (const program& p : {program{.polls = 2}, program{.pollers = 2}, program{.waiters = 2}}) {
        model m;
        m.histories = true;
        m.preemptions = 3;
        const auto r = explore(p, m);
        EXPECT_EQ(r.error, "");
        std::cout << r.states << " states, " << r.executions << " executions\n";
    }
}

// Shows that the search would find a mistake.
TEST(place_inside_model_test, a_standby_must_look_again) {
    model m;
    is_wrong({.looks_again = false}, m);
}

// The sequentially consistent stores in the order of the text.
std::vector<ums::tso::site> strong_stores() {
    std::map<std::string, ums::tso::site> sites;
    model m;
    m.sites = &sites;
    static_cast<void>(explore({}, m));
    std::vector<ums::tso::site> found;
    for (const auto& [where, site] : sites)
        if (site.what == "store seq_cst") found.push_back(site);
    return found;
}

TEST(place_inside_model_test, each_order_of_a_store_is_needed) {
    const auto stores = strong_stores();
    ASSERT_EQ(stores.size(), 2u) << "that of leave(), and that of stand_by()";
    for (const ums::tso::site& weakened : stores) {
        model m;
        m.weakened = &weakened;
        m.weakened_to = base::release;
        is_wrong({}, m);
    }
}

}  // namespace
