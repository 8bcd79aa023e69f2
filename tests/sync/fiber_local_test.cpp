// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/fiber_local.hpp"

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::fiber;
using ums::fiber_local;
namespace this_fiber = ums::this_fiber;

static_assert(!std::is_copy_constructible_v<fiber_local<int>>);
static_assert(!std::is_move_constructible_v<fiber_local<int>>);
static_assert(!std::is_default_constructible_v<fiber_local<std::reference_wrapper<int>>>);

class fiber_local_test : public conserving_test {};

fiber_local<int> static_fiber_local;

template <class F>
void on_a_new_fiber_and_a_new_thread(F body) {
    ums::run({.processors = 2}, [&] { fiber{body}.join(); });
    ums::runtime started{{.processors = 2}};
    plain_thread{body}.join();
}

// Counts its instances.
struct counted {
    counted() { ++alive; }
    ~counted() { --alive; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    int value = 0;
    static std::atomic<int> alive;
};
std::atomic<int> counted::alive;

TEST_F(fiber_local_test, a_value_is_made_on_first_use_and_is_the_fibers_own) {
    on_a_new_fiber_and_a_new_thread([] {
        fiber_local<int> local;
        EXPECT_FALSE(local.has_value());
        EXPECT_EQ(*local, 0);
        EXPECT_TRUE(local.has_value());
        *local = 1;
        fiber{[&local] {
            EXPECT_FALSE(local.has_value());
            EXPECT_EQ(local.get(), 0);
            *local = 2;
        }}.join();
        plain_thread{[&local] {
            EXPECT_FALSE(local.has_value());
            *local = 3;
        }}.join();
        EXPECT_EQ(*local, 1);
        EXPECT_EQ(*static_fiber_local, 0);
        *static_fiber_local = 5;
    });
}

TEST_F(fiber_local_test, an_initialiser_makes_the_values_also_of_types_that_cannot_move) {
    on_a_new_fiber_and_a_new_thread([] {
        int made = 0;
        fiber_local<std::string> text{[&made] { return std::to_string(++made); }};
        EXPECT_EQ(*text, "1");
        EXPECT_EQ(text->size(), 1u);
        fiber{[&text] { EXPECT_EQ(*text, "2"); }}.join();
        EXPECT_EQ(*text, "1");
        text.reset();
        EXPECT_FALSE(text.has_value());
        EXPECT_EQ(*text, "3");
        fiber_local<std::atomic<int>> fixed{[] { return std::atomic<int>{7}; }};
        EXPECT_EQ(fixed->load(), 7);
    });
}

TEST_F(fiber_local_test, an_initialiser_that_throws_leaves_no_value) {
    on_a_new_fiber_and_a_new_thread([] {
        bool fails = true;
        fiber_local<int> local{[&fails] { return fails ? throw std::runtime_error{"no"} : 4; }};
        EXPECT_THROW((void)local.get(), std::runtime_error);
        EXPECT_FALSE(local.has_value());
        fails = false;
        EXPECT_EQ(*local, 4);
    });
}

TEST_F(fiber_local_test, values_are_destroyed_at_the_end_the_latest_first) {
    static std::string order;
    struct named {
        char name = '?';
        ~named() { order += name; }
    };
    on_a_new_fiber_and_a_new_thread([] {
        order.clear();
        fiber_local<named> a, b, c;
        auto body = [&] {
            b->name = 'b';
            a->name = 'a';
            c->name = 'c';
            b->name = 'B';
        };
        fiber{body}.join();
        EXPECT_EQ(order, "caB");
        order.clear();
        plain_thread{body}.join();
        EXPECT_EQ(order, "caB");
        order.clear();
        body();
        a.reset();
        EXPECT_EQ(order, "a");
        a->name = 'A';
        b.reset();
        EXPECT_EQ(order, "aB");
    });
    EXPECT_EQ(order, "aBcA");  // The thread's values, at the end of the fiber_locals.
}

TEST_F(fiber_local_test, a_destructor_may_use_others_and_block) {
    static std::atomic<int> destroyed;
    static std::atomic<fiber_local<int>*> other;
    struct leaving {
        int rounds = 2;
        ~leaving() {
            **other += 1;
            this_fiber::yield();
            ++destroyed;
        }
    };
    destroyed = 0;
    on_a_new_fiber_and_a_new_thread([] {
        fiber_local<int> numbers;
        other = &numbers;
        fiber_local<leaving> local;
        auto body = [&] {
            *numbers = 3;
            EXPECT_EQ(local->rounds, 2);
        };
        fiber{body}.join();
        plain_thread{body}.join();
    });
    EXPECT_EQ(destroyed, 4);
}

TEST_F(fiber_local_test, a_destructor_that_uses_its_own_makes_one_more) {
    static std::atomic<int> destroyed;
    static std::atomic<const void*> where;
    struct again {
        int rounds = 0;
        ~again() {
            const int left = rounds;
            ++destroyed;
            if (left > 0)
                (*static_cast<const fiber_local<again>*>(where.load()))->rounds = left - 1;
        }
    };
    destroyed = 0;
    on_a_new_fiber_and_a_new_thread([] {
        fiber_local<again> local;
        where = &local;
        fiber{[&] { local->rounds = 9; }}.join();
        plain_thread{[&] { local->rounds = 9; }}.join();
    });
    EXPECT_EQ(destroyed, 40);
}

TEST_F(fiber_local_test, a_value_goes_where_its_fiber_goes) {
    ums::run({.processors = 2}, [] {
        constexpr int fibers = scaled(200, 40), rounds = scaled(200, 40);
        fiber_local<int> number;
        fiber_local<counted> object;
        std::vector<fiber> all;
        for (int i = 0; i < fibers; ++i)
            all.emplace_back([&, i] {
                *number = i;
                counted* const mine = &*object;
                for (int n = 0; n < rounds; ++n) {
                    this_fiber::yield();
                    ASSERT_EQ(*number, i);
                    ASSERT_EQ(&*object, mine);
                    ++object->value;
                }
                EXPECT_EQ(object->value, rounds);
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(counted::alive, 0);
    });
}

TEST_F(fiber_local_test, one_may_go_while_fibers_have_values_and_none_sees_anothers) {
    ums::run({.processors = 2}, [] {
        constexpr int fibers = 10;
        auto* first = new fiber_local<counted>;
        std::atomic<int> used = 0;
        std::atomic<bool> replaced = false;
        std::optional<fiber_local<std::string>> second;
        std::vector<fiber> all;
        for (int i = 0; i < fibers; ++i)
            all.emplace_back([&, i] {
                (*first)->value = i;
                ++used;
                while (!replaced) this_fiber::yield();
                EXPECT_FALSE(second->has_value());
                if (i % 2 == 0) {
                    EXPECT_EQ(**second, "");
                    **second = "mine";
                }
            });
        (*first)->value = 100;
        while (used != fibers) this_fiber::yield();
        EXPECT_EQ(counted::alive, fibers + 1);
        delete first;
        EXPECT_EQ(counted::alive, fibers);  // The caller's is gone.
        second.emplace();
        replaced = true;
        for (fiber& f : all) f.join();
        EXPECT_EQ(counted::alive, 0);
    });
}

TEST_F(fiber_local_test, one_after_the_other_does_not_collect_values) {
    on_a_new_fiber_and_a_new_thread([] {
        for (int i = 0; i < 50; ++i) {
            auto local = std::make_unique<fiber_local<counted>>();
            ++(*local)->value;
            EXPECT_EQ((*local)->value, 1);
            // Another fiber's value, which is left behind.
            std::atomic<bool> made = false, end = false;
            fiber other{[&, at = local.get()] {
                ++(*at)->value;
                made = true;
                while (!end) this_fiber::yield();
            }};
            while (!made) this_fiber::yield();
            local.reset();
            EXPECT_EQ(counted::alive, 1);
            end = true;
            other.join();
            EXPECT_EQ(counted::alive, 0);
        }
    });
}

TEST_F(fiber_local_test, a_stale_value_goes_when_its_place_is_needed) {
    ums::run({.processors = 2}, [] {
        std::optional<fiber_local<counted>> local;
        std::atomic<int> step = 0;
        fiber user{[&] {
            for (int i = 0; i < 100; ++i) {
                while (step != 2 * i + 1) this_fiber::yield();
                EXPECT_EQ((*local)->value++, 0);
                EXPECT_EQ(counted::alive, 1);
                ++step;
            }
        }};
        for (int i = 0; i < 100; ++i) {
            while (step != 2 * i) this_fiber::yield();
            local.emplace();
            ++step;
        }
        user.join();
        EXPECT_EQ(counted::alive, 0);
    });
}

TEST_F(fiber_local_test, many_at_random_keep_their_values_apart) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int fibers = 20, rounds = scaled(3000, 300), places = 40;
        std::vector<std::unique_ptr<fiber_local<std::string>>> shared;
        for (int i = 0; i < places; ++i)
            shared.push_back(std::make_unique<fiber_local<std::string>>());
        auto work = [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed + n)};
            std::vector<std::unique_ptr<fiber_local<std::string>>> own(places);
            std::vector<std::string> expected(2 * places);
            for (int i = 0; i < rounds; ++i) {
                const auto at = random() % (2 * places);
                if (at >= places && own[at - places] == nullptr)
                    own[at - places] = std::make_unique<fiber_local<std::string>>();
                fiber_local<std::string>& local = at < places ? *shared[at] : *own[at - places];
                ASSERT_EQ(*local, expected[at]);
                switch (random() % 4) {
                    case 0:
                        this_fiber::yield();
                        break;
                    case 1:
                        if (at < places)
                            local.reset();
                        else
                            own[at - places].reset();
                        expected[at].clear();
                        break;
                    default:
                        *local = expected[at] =
                            std::to_string(random()) + " by " + std::to_string(n);
                }
            }
        };
        std::vector<fiber> all;
        std::vector<plain_thread> plain;
        for (int i = 0; i < 2; ++i) plain.emplace_back(work, 100 + i);
        for (int i = 0; i < fibers; ++i) all.emplace_back(work, i);
        for (fiber& f : all) f.join();
        for (plain_thread& t : plain) t.join();
    });
}

const child_program uses_itself{"uses_itself", [](const child_arguments&) {
                                    fiber_local<int>* self = nullptr;
                                    bool inside = false;
                                    fiber_local<int> local{[&]() -> int {
                                        if (std::exchange(inside, true)) return 1;
                                        return **self;
                                    }};
                                    self = &local;
                                    return *local;
                                }};

TEST(fiber_local_misuse_test, an_initialiser_that_uses_its_own_ends_the_program) {
    const child_end end = run_child("uses_itself", {}, {});
    EXPECT_NE(end.code, 0);
    EXPECT_NE(end.err.find("the initialiser of a fiber_local used it"), end.err.npos) << end;
}

}  // namespace
