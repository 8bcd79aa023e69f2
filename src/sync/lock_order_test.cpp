// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#include "sync/lock_order.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/debug_words.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/shared_mutex.hpp"

namespace {

using namespace std::chrono_literals;
using ums::fiber;

#if defined(UMS_DEBUG)
constexpr bool warns = true;
#else
constexpr bool warns = false;
#endif

class lock_order_test : public conserving_test {};

template <class A, class B>
void lock_both(A& first, B& second) {
    const std::lock_guard outer{first};
    const std::lock_guard inner{second};
}

// What the child does, with the warnings that it should get in a debug build.
struct deed {
    const char* name;
    std::size_t warnings;
    void (*run)();
};
const deed deeds[] = {
    {"both orders, by two fibers and again and again", 1,
     [] {
         ums::mutex a;
         ums::fair_mutex b;
         for (int i = 0; i < 10; ++i) {
             fiber{{.name = "here"}, [&] { lock_both(a, b); }}.join();
             fiber{{.name = "there"}, [&] { lock_both(b, a); }}.join();
         }
     }},
    {"both orders, by a fiber and a thread", 1,
     [] {
         ums::mutex a, b;
         lock_both(a, b);
         std::thread{[&] { lock_both(b, a); }}.join();
     }},
    {"two pairs", 2,
     [] {
         ums::recursive_mutex a, b, c;
         lock_both(a, b);
         lock_both(b, c);
         lock_both(b, a);
         lock_both(c, b);
     }},
    {"one order", 0,
     [] {
         ums::mutex a, b, c;
         for (int i = 0; i < 10; ++i)
             fiber{[&] { lock_both(a, b), lock_both(b, c), lock_both(a, c); }}.join();
     }},
    {"one after the other", 0,
     [] {
         ums::mutex a, b;
         for (ums::mutex* m : {&a, &b, &b, &a}) const std::lock_guard guard{*m};
     }},
    {"shared mutexes, and one of them as a reader", 1,
     [] {
         ums::shared_mutex a;
         ums::shared_timed_mutex b;
         lock_both(a, b);
         const std::shared_lock reader{b};
         a.lock();
         a.unlock();
     }},
    {"a mutex and a shared one, by readers", 1,
     [] {
         ums::mutex a;
         ums::shared_mutex b;
         {
             const std::lock_guard guard{a};
             const std::shared_lock reader{b};
         }
         const std::shared_lock reader{b};
         a.lock();
         a.unlock();
     }},
    {"readers, by tries and in one order", 0,
     [] {
         ums::shared_mutex a, b;
         for (int i = 0; i < 10; ++i) {
             const std::shared_lock outer{a};
             const std::shared_lock inner{b};
         }
         const std::shared_lock other{b};
         if (a.try_lock_shared()) a.unlock_shared();
     }},
    {"a reader's lock that another has given back", 0,
     [] {
         ums::mutex a;
         {
             auto shared = std::make_unique<ums::shared_mutex>();
             shared->lock_shared();
             fiber{[&] { shared->unlock_shared(); }}.join();
         }
         const std::lock_guard guard{a};
     }},
    {"a recursive lock inside another", 0,
     [] {
         ums::recursive_mutex a, b;
         const std::lock_guard outer{a};
         lock_both(b, a);
     }},
    {"the inverse order by try_lock, with a deadline, and by std::lock", 0,
     [] {
         ums::timed_mutex a, b;
         lock_both(a, b);
         const std::lock_guard guard{b};
         if (a.try_lock()) a.unlock();
         if (a.try_lock_for(1s)) a.unlock();
         ums::mutex c, d;
         { const std::scoped_lock both{c, d}; }
         { const std::scoped_lock both{d, c}; }
     }},
    {"one held by try_lock counts", 1,
     [] {
         ums::mutex a, b;
         if (!a.try_lock()) return;
         b.lock();
         b.unlock();
         a.unlock();
         lock_both(b, a);
     }},
    {"new mutexes in the place of old ones", 0,
     [] {
         alignas(ums::mutex) unsigned char place[2][sizeof(ums::mutex)];
         for (int i = 0; i < 20; ++i) {
             auto* a = new (place[i % 2]) ums::mutex;
             auto* b = new (place[1 - i % 2]) ums::mutex;
             lock_both(*a, *b);
             a->~mutex();
             b->~mutex();
         }
     }},
    {"a fiber that ends with a mutex held", 0,
     [] {
         ums::mutex abandoned, a;
         fiber{[&] { abandoned.lock(); }}.join();
         fiber{[&] { a.lock(), a.unlock(); }}.join();
     }},
};

const child_program does{"does", [](const child_arguments& a) {
                             ums::run({.processors = 2}, [&] { deeds[std::stoi(a.at(0))].run(); });
                             return 0;
                         }};

std::size_t warnings(const child_end& end) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = end.err.find("ums: lock order: ", at)) != std::string::npos;
         ++at)
        ++n;
    return n;
}

TEST_F(lock_order_test, each_pair_of_mutexes_in_both_orders_is_told_once) {
    for (int i = 0; const deed& d : deeds) {
        const child_end end = run_child("does", {std::to_string(i++)});
        EXPECT_EQ(end.code, 0) << d.name << ": " << end;
        EXPECT_EQ(warnings(end), warns ? d.warnings : 0) << d.name << ": " << end;
    }
}

TEST_F(lock_order_test, the_warning_names_both_fibers) {
    const child_end end = run_child("does", {"0"});
    if (!warns) return;
    EXPECT_NE(end.err.find("\"here\""), std::string::npos) << end;
    EXPECT_NE(end.err.find("\"there\""), std::string::npos) << end;
}

TEST_F(lock_order_test, the_variable_turns_it_off) {
    EXPECT_EQ(run_child("does", {"0"}, {{"UMS_DEBUG", with_debug_words("lock_order=off")}}).err,
              "");
}

}  // namespace
