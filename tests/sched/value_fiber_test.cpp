// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nosync
#include "ums/value_fiber.hpp"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/fiber_local.hpp"
#include "ums/policy.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

namespace this_fiber = ums::this_fiber;

class value_fiber_test : public conserving_test {};

int add(int a, int b) { return a + b; }

TEST_F(value_fiber_test, join_returns_the_value) {
    on_a_fiber_and_on_a_thread([] {
        auto sum = ums::spawn(add, 1, 2);
        static_assert(std::is_same_v<decltype(sum), ums::value_fiber<int>>);
        EXPECT_TRUE(sum.joinable());
        EXPECT_NE(sum.get_id(), ums::fiber_id{});
        EXPECT_EQ(sum.join(), 3);
        EXPECT_FALSE(sum.joinable());
    });
}

TEST_F(value_fiber_test, returns_what_cannot_be_copied_or_default_constructed) {
    struct particular {
        explicit particular(int n) : value{std::make_unique<int>(n)} {}
        std::unique_ptr<int> value;
    };
    on_a_fiber_and_on_a_thread([] {
        const particular got = ums::spawn([] { return particular{4}; }).join();
        EXPECT_EQ(*got.value, 4);
    });
}

TEST_F(value_fiber_test, returns_nothing) {
    on_a_fiber_and_on_a_thread([] {
        int runs = 0;
        auto f = ums::spawn([&] { ++runs; });
        static_assert(std::is_same_v<decltype(f), ums::value_fiber<void>>);
        f.join();
        EXPECT_EQ(runs, 1);
    });
}

TEST_F(value_fiber_test, returns_references) {
    on_a_fiber_and_on_a_thread([] {
        struct holder {
            int value = 7;
        };
        holder h;
        auto f = ums::spawn([&h]() -> int& { return h.value; });
        static_assert(std::is_same_v<decltype(f), ums::value_fiber<int&>>);
        EXPECT_EQ(&f.join(), &h.value);
        auto member = ums::spawn(&holder::value, &h);  // As std::invoke() returns it.
        EXPECT_EQ(std::addressof(member.join()), &h.value);
    });
    static const int shared = 0;
    EXPECT_EQ(&ums::run([]() -> const int& { return shared; }), &shared);
}

TEST_F(value_fiber_test, join_rethrows_what_the_function_threw) {
    struct odd {
        int value;
    };
    on_a_fiber_and_on_a_thread([] {
        auto f = ums::spawn([](int n) -> std::string { throw odd{n}; }, 5);
        try {
            f.join();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const odd& o) {
            EXPECT_EQ(o.value, 5);
        }
        EXPECT_FALSE(f.joinable());
        auto g = ums::spawn([] { throw std::runtime_error{"said so"}; });
        try {
            g.join();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "said so");
        }
    });
}

TEST_F(value_fiber_test, a_detached_ones_value_and_exception_are_dropped) {
    std::atomic<int> alive = 0, made = 0;
    struct counted {
        std::atomic<int>* alive;
        explicit counted(std::atomic<int>& a) : alive{&a} { ++*alive; }
        counted(counted&& other) noexcept : alive{other.alive} { ++*alive; }
        ~counted() { --*alive; }
    };
    ums::run({.processors = 2}, [&] {
        for (int i = 0; i < scaled(1000, 100); ++i) {
            ums::spawn([&, i] {
                ++made;
                if (i % 2 == 0) throw counted{alive};
                return counted{alive};
            }).detach();
        }
    });
    EXPECT_EQ(made, scaled(1000, 100));
    EXPECT_EQ(alive, 0);
}

TEST_F(value_fiber_test, a_joined_ones_value_is_destroyed) {
    const auto shared = std::make_shared<int>(1);
    ums::run([&] {
        auto f = ums::spawn([&] { return shared; });
        EXPECT_EQ(*f.join(), 1);
    });
    EXPECT_EQ(shared.use_count(), 1);
}

// A value may be large, or aligned to more than a stack's head is.
template <std::size_t bytes, std::size_t alignment>
struct alignas(alignment) block {
    explicit block(int n) : first{n}, last{n} {}
    int first;
    char between[bytes];
    int last;
};

template <std::size_t bytes, std::size_t alignment>
void return_a_block(const ums::fiber_options& how) {
    using value = block<bytes, alignment>;
    auto f = ums::spawn(how, [] {
        value made{7};
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&made) % alignment, 0u);
        return made;
    });
    const value got = f.join();
    EXPECT_EQ(got.first, 7);
    EXPECT_EQ(got.last, 7);
}

TEST_F(value_fiber_test, values_may_be_of_any_size_and_alignment) {
    on_a_fiber_and_on_a_thread([] {
        for (const ums::fiber_options& how :
             {ums::fiber_options{}, ums::fiber_options{.name = "a name of its own"},
              ums::fiber_options{.stack_bytes = std::size_t{1} << 20}}) {
            return_a_block<1, 4>(how);
            return_a_block<300, 16>(how);
            return_a_block<300, 64>(how);
            return_a_block<400, 8>(how);
            return_a_block<1, 128>(how);
            return_a_block<10'000, 256>(how);
        }
    });
}

TEST_F(value_fiber_test, a_function_that_does_not_fit_onto_the_stack_returns_its_value) {
    on_a_fiber_and_on_a_thread([] {
        const std::vector<int> numbers(10);
        const block<20'000, 64> large{5};
        const ums::fiber_options small{.stack_bytes = 64 * 1024};
        auto f = ums::spawn(small, [large, numbers] { return large.last + numbers[3]; });
        EXPECT_EQ(f.join(), 5);
        ums::spawn(small, [large, numbers] {
            EXPECT_EQ(large.last, 5);
            return numbers;
        }).detach();
    });
}

TEST_F(value_fiber_test, a_name_and_a_value_lie_side_by_side) {
    ums::run({.processors = 2, .measure_stacks = true}, [] {
        const std::string name(256, 'n');
        auto f = ums::spawn({.name = name}, [] {
            block<300, 64> value{3};
            std::fill(std::begin(value.between), std::end(value.between), 'v');
            return std::pair{value, std::string{this_fiber::name()}};
        });
        const auto [value, seen] = f.join();
        EXPECT_EQ(value.last, 3);
        EXPECT_EQ(value.between[299], 'v');
        EXPECT_EQ(seen, name);
    });
}

TEST_F(value_fiber_test, a_move_that_throws_ends_the_join) {
    static std::atomic<int> alive;
    struct moody {
        moody() { ++alive; }
        moody(moody&& other) : is_angry{other.is_angry} {
            if (is_angry) throw std::runtime_error{"not moved"};
            ++alive;
        }
        ~moody() { --alive; }
        bool is_angry = false;
    };
    on_a_fiber_and_on_a_thread([] {
        auto f = ums::spawn([] {
            std::optional<moody> none;
            return moody{};
        });
        f.join();
        // It is angry once it lies where the joiner takes it from.
        auto g = ums::spawn([] {
            struct late {
                moody m;
                late() = default;
                late(late&& other) : m{std::move(other.m)} { m.is_angry = true; }
            };
            return std::optional<late>{std::in_place};
        });
        EXPECT_THROW(g.join(), std::runtime_error);
        EXPECT_FALSE(g.joinable());
    });
    EXPECT_EQ(alive, 0);
}

TEST_F(value_fiber_test, a_detached_ones_value_is_dropped_by_a_fiber) {
    // Its destructor may wait, and use what belongs to a fiber.
    struct waits_in_the_end {
        std::atomic<int>* dropped;
        explicit waits_in_the_end(std::atomic<int>& d) : dropped{&d} {}
        waits_in_the_end(waits_in_the_end&& other) noexcept
            : dropped{std::exchange(other.dropped, nullptr)} {}
        ~waits_in_the_end() {
            if (dropped == nullptr) return;
            static ums::fiber_local<std::string> own;
            *own = "a string that does not fit into itself";
            this_fiber::yield();
            EXPECT_EQ(own->size(), 38u);
            ++*dropped;
        }
    };
    std::atomic<int> dropped = 0, made = 0;
    const int n = scaled(3000, 300);
    ums::run({.processors = 2}, [&] {
        for (int i = 0; i < n; ++i) {
            // The detach comes before, at or after the end.
            std::atomic<bool> has_begun = false;
            auto f = ums::spawn([&, i] {
                has_begun = true;
                for (int k = i % 7; k > 0; --k) this_fiber::yield();
                ++made;
                return waits_in_the_end{dropped};
            });
            while (!has_begun) this_fiber::yield();
            for (int k = i % 5; k > 0; --k) this_fiber::yield();
            f.detach();
        }
    });
    EXPECT_EQ(made, n);
    EXPECT_EQ(dropped, n);
}

// Says how numbers were rounded where it was dropped.
struct tells_rounding {
    std::shared_ptr<int> to;
    ~tells_rounding() {
        if (to != nullptr) *to = std::fegetround();
    }
    explicit tells_rounding(std::shared_ptr<int> t) noexcept : to{std::move(t)} {}
    tells_rounding(tells_rounding&&) noexcept = default;
};

// A policy that detaches a fiber when its end has begun: too late for the fiber to see it.
struct detaches_late : ums::policy {
    void attach(unsigned processor) override { all->attach(processor); }
    void detach(unsigned processor) override { all->detach(processor); }
    void ready(ums::fiber_ref f, unsigned processor) noexcept override { all->ready(f, processor); }
    ums::fiber_ref next(unsigned processor) noexcept override { return all->next(processor); }
    bool empty(unsigned processor) const noexcept override { return all->empty(processor); }
    void left(ums::fiber_ref, unsigned) noexcept override {
        if (is_due.exchange(false)) handle->detach();
    }

    std::unique_ptr<ums::policy> all = ums::make_policy(ums::policy_kind::global_fifo);
    static inline std::atomic<bool> is_due;
    static inline ums::value_fiber<tells_rounding>* handle;
};

TEST_F(value_fiber_test, a_value_is_dropped_if_the_detach_comes_during_the_end) {
    if (std::getenv("UMS_POLICY") != nullptr) GTEST_SKIP() << "it takes the place of the policy";
    const auto shared = std::make_shared<int>(1);
    struct at_the_end {
        ~at_the_end() { detaches_late::is_due = true; }
    };
    ums::run({.processors = 1, .make_policy = [] { return std::make_unique<detaches_late>(); }},
             [&] {
                 ums::fiber_local<at_the_end> last;
                 ums::value_fiber<tells_rounding> f;
                 detaches_late::handle = &f;
                 std::fesetround(FE_DOWNWARD);
                 f = ums::spawn({.name = "detached late"}, [&] {
                     std::fesetround(FE_UPWARD);
                     (void)*last;
                     return tells_rounding{shared};
                 });
                 while (f.joinable()) this_fiber::yield();
                 const auto ended = ums::stats().finished;
                 while (shared.use_count() != 1) this_fiber::yield();
                 while (ums::stats().finished == ended) this_fiber::yield();
                 std::fesetround(FE_TONEAREST);
             });
    EXPECT_EQ(shared.use_count(), 1);
    // As where it ended, not as on the fiber that ran meanwhile.
    EXPECT_EQ(*shared, FE_UPWARD);
}

TEST_F(value_fiber_test, a_plain_thread_may_detach_at_any_time) {
    const auto shared = std::make_shared<int>(1);
    {
        ums::runtime started{{.processors = 1}};
        for (int i = 0; i < scaled(3000, 300); ++i) {
            std::atomic<bool> has_begun = false;
            auto f = ums::spawn([shared, &has_begun] {
                has_begun = true;
                return shared;
            });
            while (!has_begun) std::this_thread::yield();
            f.detach();
        }
    }
    EXPECT_EQ(shared.use_count(), 1);
}

TEST_F(value_fiber_test, moves) {
    on_a_fiber_and_on_a_thread([] {
        std::vector<ums::value_fiber<int>> all;
        for (int i = 0; i < 100; ++i) all.push_back(ums::spawn([i] { return i; }));
        int sum = 0;
        for (auto& f : all) sum += f.join();
        EXPECT_EQ(sum, 4950);
    });
}

TEST_F(value_fiber_test, takes_options) {
    on_a_fiber_and_on_a_thread([] {
        auto f = ums::spawn({.name = "named"}, [] { return std::string{this_fiber::name()}; });
        EXPECT_EQ(f.join(), "named");
    });
}

TEST_F(value_fiber_test, joining_twice_or_itself_is_refused) {
    ums::run([] {
        auto f = ums::spawn([] { return 1; });
        EXPECT_EQ(f.join(), 1);
        EXPECT_THROW(f.join(), std::system_error);
        EXPECT_THROW(f.detach(), std::system_error);

        ums::value_fiber<int> g;
        std::atomic<bool> ready = false;
        std::atomic<int> refused = 0;
        g = ums::spawn([&] {
            while (!ready) this_fiber::yield();
            try {
                return g.join();
            } catch (const std::system_error& e) {
                refused = e.code() == std::errc::resource_deadlock_would_occur ? 1 : -1;
                return 2;
            }
        });
        ready = true;
        while (refused == 0) this_fiber::yield();
        EXPECT_EQ(refused, 1);
        EXPECT_EQ(g.join(), 2);
    });
}

TEST_F(value_fiber_test, run_returns_what_the_first_fiber_returned_or_threw) {
    EXPECT_EQ(ums::run([] { return std::make_unique<int>(8); }).operator*(), 8);
    EXPECT_THROW(ums::run([]() -> int { throw std::logic_error{"first"}; }), std::logic_error);
}

int fibonacci(int n) {
    if (n < 2) return n;
    auto a = ums::spawn(fibonacci, n - 1);
    const int b = fibonacci(n - 2);
    return a.join() + b;
}

TEST_F(value_fiber_test, computes_recursively) {
    on_a_fiber_and_on_a_thread(
        [] { EXPECT_EQ(ums::spawn(fibonacci, scaled(18, 10)).join(), scaled(2584, 55)); });
}

int throws_below(int depth) {
    if (depth == 0) throw std::runtime_error{"from the bottom"};
    return ums::spawn(throws_below, depth - 1).join() + 1;
}

TEST_F(value_fiber_test, an_exception_passes_through_many_fibers) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < 20; ++i)
            EXPECT_THROW(ums::spawn(throws_below, 50).join(), std::runtime_error);
    });
}

}  // namespace
