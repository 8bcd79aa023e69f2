// SPDX-License-Identifier: MIT
//
// The text of sync/child_count, with a scope around it as in sync/scope.cpp, in every execution
// that C++20 allows, up to a bound: a join returns when the children that were begun before it have
// ended, it sees what they did, no joiner is left asleep, and nobody touches a scope that is gone.

#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "internal/modelled/mutants.hpp"
#include "internal/tso_model.hpp"
#include "support/scale.hpp"

#define base modelled_base
#define sync modelled
#include "sync/child_count.hpp"
#undef base
#undef sync

namespace {

using ums::modelled_base::acquire;
using ums::modelled_base::atomic;
using ums::modelled_base::relaxed;
using ums::modelled_base::release;
using ums::tso::model;

constexpr int most = 3;

struct machine {
    // --- The scope ---
    atomic<std::uint64_t> word, begun, told;
    ums::modelled_os::lock lock;
    std::vector<atomic<std::uint32_t>*> queue;  // Guarded by the lock: the words joiners sleep on.
    bool has_failed = false;                    // The same.
    // For the proof.
    bool is_gone = false;
    // --- Around it ---
    struct child {
        atomic<std::uint32_t> is_made;
        atomic<std::uint32_t> did;
    };
    std::array<child, most> all;
    std::array<atomic<std::uint32_t>, 2> sleeps, has_joined;

    using counter = ums::modelled::child_counter<atomic<std::uint64_t>&>;
    counter children() {
        look();
        return {word, begun, told};
    }
    void look() {
        if (is_gone) model::running().fail("a scope is touched that is gone");
    }

    void begin(int n, bool is_own) {
        is_own ? children().begin_own() : children().begin();
        set(all[static_cast<std::size_t>(n)].is_made);
    }
    static void set(atomic<std::uint32_t>& flag) {
        flag.store(1, release);
        ums::modelled_os::futex_wake(flag.address(), 9);
    }
    static void await(atomic<std::uint32_t>& flag) {
        while (flag.load(acquire) == 0) {
            if (model::running().is_over()) return;
            ums::modelled_os::futex_wait(flag, 0);
        }
    }

    void fail() {
        look();
        const ums::modelled_os::lock_guard guard{lock};
        has_failed = true;
        children().set_failed();
    }
    void leave() {
        if (!children().end()) return;
        look();
        lock.acquire();
        std::vector<atomic<std::uint32_t>*> woken;
        if (children().next_of_waking()) woken.swap(queue);
        look();
        lock.release();
        for (atomic<std::uint32_t>* const one : woken) set(*one);
    }
    void wait(std::size_t n) {
        lock.acquire();
        const bool is_left = children().await();
        if (is_left) queue.push_back(&sleeps[n]);
        lock.release();
        if (is_left) await(sleeps[n]);
    }
    // Returns whether a child has failed.
    bool join(std::size_t n) {
        if (children().is_done()) return false;
        wait(n);
        const ums::modelled_os::lock_guard guard{lock};
        if (!has_failed) return false;
        has_failed = false;
        children().clear_failed();
        return true;
    }
    // For build(): the owner has begun a child, and the nth joiner waits.
    void wait_from_the_start(std::size_t n) {
        children().begin_own();
        all[0].is_made.store(1, release);
        if (!children().await()) model::running().fail("nothing to wait for");
        queue.push_back(&sleeps[n]);
    }
    // What the first `n` children did is seen.
    void expect_done(int n) {
        for (int i = 0; i < n; ++i)
            // relaxed: an older value is there to be read unless the join has ordered it away.
            if (all[static_cast<std::size_t>(i)].did.load(relaxed) != 1)
                model::running().fail("a child is not over");
    }
    void run_child(int n) {
        child& self = all[static_cast<std::size_t>(n)];
        await(self.is_made);
        self.did.store(1, relaxed);
    }
};

// Everything lies at the same place in each execution.
machine& remade() {
    alignas(machine) static char room[sizeof(machine)];
    static machine* last = nullptr;
    if (last != nullptr) std::vector<atomic<std::uint32_t>*>{}.swap(last->queue);
    return *(last = new (room) machine);
}

struct program {
    const char* name;
    void (*build)(model&, machine&);
    unsigned preemptions = 2;
};

void plain_child(model& of, machine& s, int n) {
    of.strand("child " + std::to_string(n), [&s, n] {
        s.run_child(n);
        s.leave();
    });
}

constexpr program programs[] = {
    {"the owner joins two",
     [](model& of, machine& s) {
         of.strand("owner", [&s] {
             s.begin(0, true);
             s.begin(1, true);
             s.join(0);
             s.expect_done(2);
             s.is_gone = true;
         });
         plain_child(of, s, 0);
         plain_child(of, s, 1);
     }},
    {"the owner joins twice",
     [](model& of, machine& s) {
         of.strand("owner", [&s] {
             s.begin(0, true);
             s.join(0);
             s.expect_done(1);
             s.begin(1, true);
             s.join(1);
             s.expect_done(2);
             s.is_gone = true;
         });
         plain_child(of, s, 0);
         plain_child(of, s, 1);
     }},
    {"another joins while the owner does",
     [](model& of, machine& s) {
         s.children().begin_own();
         s.all[0].is_made.store(1, release);
         of.strand("owner", [&s] {
             s.join(0);
             s.expect_done(1);
             s.await(s.has_joined[1]);
             s.is_gone = true;
         });
         of.strand("other", [&s] {
             s.join(1);
             s.expect_done(1);
             s.set(s.has_joined[1]);
         });
         plain_child(of, s, 0);
     }},
    {"a child begins another",
     [](model& of, machine& s) {
         of.strand("owner", [&s] {
             s.begin(0, true);
             s.join(0);
             s.expect_done(2);
             s.is_gone = true;
         });
         of.strand("child 0", [&s] {
             s.run_child(0);
             s.begin(1, false);
             s.leave();
         });
         plain_child(of, s, 1);
     }},
    {"another joins, and destroys",
     [](model& of, machine& s) {
         of.strand("owner", [&s] {
             s.begin(0, true);
             s.begin(1, true);
             s.set(s.has_joined[0]);
         });
         of.strand("other", [&s] {
             s.await(s.has_joined[0]);
             s.join(1);
             s.expect_done(2);
             s.is_gone = true;
         });
         plain_child(of, s, 0);
         plain_child(of, s, 1);
     },
     1},
    {"another begins while the owner joins, and destroys",
     [](model& of, machine& s) {
         of.strand("owner", [&s] {
             s.begin(0, true);
             s.join(0);
             s.expect_done(1);
             s.await(s.has_joined[1]);
             s.join(1);
             s.expect_done(2);
             s.is_gone = true;
         });
         of.strand("other", [&s] {
             s.begin(1, false);
             s.set(s.has_joined[1]);
         });
         plain_child(of, s, 0);
         plain_child(of, s, 1);
     },
     1},
    {"a child fails",
     [](model& of, machine& s) {
         of.strand("owner", [&s] {
             s.begin(0, true);
             s.begin(1, true);
             if (!s.join(0)) model::running().fail("a failure is lost");
             s.expect_done(2);
             s.begin(2, true);
             if (s.join(1)) model::running().fail("a failure comes twice");
             s.expect_done(3);
             s.is_gone = true;
         });
         of.strand("child 0", [&s] {
             s.run_child(0);
             s.fail();
             s.leave();
         });
         plain_child(of, s, 1);
         plain_child(of, s, 2);
     },
     1},
    {"the owner begins and joins while another waits",
     [](model& of, machine& s) {
         s.wait_from_the_start(1);
         of.strand("owner", [&s] {
             s.begin(1, true);
             s.join(0);
             s.expect_done(2);
             s.await(s.has_joined[1]);
             s.is_gone = true;
         });
         of.strand("other", [&s] {
             s.await(s.sleeps[1]);
             s.expect_done(1);
             s.set(s.has_joined[1]);
         });
         plain_child(of, s, 0);
         plain_child(of, s, 1);
     },
     1},
    {"another begins and joins while the owner waits",
     [](model& of, machine& s) {
         s.wait_from_the_start(0);
         of.strand("owner", [&s] {
             s.await(s.sleeps[0]);
             s.expect_done(1);
             s.await(s.has_joined[1]);
             s.is_gone = true;
         });
         of.strand("other", [&s] {
             s.begin(1, false);
             s.join(1);
             if (s.all[1].did.load(relaxed) != 1) model::running().fail("a child is not over");
             s.set(s.has_joined[1]);
         });
         plain_child(of, s, 0);
         plain_child(of, s, 1);
     },
     1},
};

model::report explore(const program& p, model& m) {
    m.histories = true;
    m.checks_orders = true;
    m.preemptions = under_asan || under_tsan ? 1 : p.preemptions;
    m.most_executions = 200'000;
    return m.explore([&p](model& of) {
        machine& s = remade();
        p.build(of, s);
    });
}

TEST(child_count_model_test, joins_see_all_and_nobody_is_left) {
    for (const program& p : programs) {
        model m;
        const auto r = explore(p, m);
        EXPECT_EQ(r.error, "") << p.name;
        EXPECT_FALSE(r.is_cut) << p.name;
        std::cout << p.name << ": " << r.states << " states, " << r.executions << " executions\n";
    }
}

constexpr ums::tso::replaced_text mutants[] = {
#include "child_count_model_test.inc"
};

template <class F>
std::string found(F change) {
    for (const program& p : programs) {
        model m;
        change(m);
        if (const std::string error = explore(p, m).error; !error.empty())
            return std::string{p.name} + ", " + error.substr(0, error.find('\n'));
    }
    return "";
}

TEST(child_count_model_test, finds_each_mutant) {
    if (under_asan || under_tsan) GTEST_SKIP() << "the search goes through the same states";
    for (const auto& one : mutants) {
        EXPECT_TRUE(one.is_there) << one.name << ": the text that it replaces has changed";
        ums::tso::mutant = static_cast<int>(&one - mutants) + 1;
        const std::string what = found([](model&) {});
        EXPECT_NE(what, "") << one.name;
        std::cout << one.name << ": " << what << '\n';
    }
    ums::tso::mutant = 0;
}

TEST(child_count_model_test, its_orders_are_needed) {
    if (under_asan || under_tsan) GTEST_SKIP() << "the search goes through the same states";
    std::map<std::string, ums::tso::site> sites;
    for (const program& p : programs) {
        model m;
        m.sites = &sites;
        static_cast<void>(explore(p, m));
    }
    for (const auto& [key, site] : sites) {
        if (std::string_view{site.file}.find("child_count.hpp") == std::string_view::npos) continue;
        const std::string what = found([w = &site](model& m) {
            m.weakened = w;
            m.weakened_to = std::memory_order_relaxed;
        });
        EXPECT_NE(what, "") << site.name();
        std::cout << site.name() << ':' << site.line << ": " << what << '\n';
    }
}

}  // namespace
