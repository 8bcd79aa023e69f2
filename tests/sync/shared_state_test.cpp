// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/future.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <memory_resource>
#include <pthread.h>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/fiber_local.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::fiber;
using ums::future;
using ums::future_errc;
using ums::future_status;
using ums::packaged_task;
using ums::promise;
using ums::shared_future;
namespace this_fiber = ums::this_fiber;

// --- The same traits as in std (libstdc++ forgets some noexcept of shared_future's copies) ---

template <class Ours, class Theirs>
constexpr bool has_traits_of =
    std::is_default_constructible_v<Ours> ==
    std::is_default_constructible_v<Theirs>&& std::is_nothrow_default_constructible_v<Ours> ==
    std::is_nothrow_default_constructible_v<Theirs>&& std::is_copy_constructible_v<Ours> ==
    std::is_copy_constructible_v<Theirs>&& std::is_nothrow_copy_constructible_v<Ours> >=
        std::is_nothrow_copy_constructible_v<Theirs>&& std::is_copy_assignable_v<Ours> ==
    std::is_copy_assignable_v<Theirs>&& std::is_nothrow_copy_assignable_v<Ours> >=
        std::is_nothrow_copy_assignable_v<Theirs>&& std::is_nothrow_move_constructible_v<Ours> ==
    std::is_nothrow_move_constructible_v<Theirs>&& std::is_nothrow_move_assignable_v<Ours> ==
    std::is_nothrow_move_assignable_v<Theirs>&& std::is_nothrow_swappable_v<Ours> ==
    std::is_nothrow_swappable_v<Theirs>&& std::is_nothrow_destructible_v<Ours> ==
    std::is_nothrow_destructible_v<Theirs>&& std::uses_allocator_v<Ours, std::allocator<int>> ==
    std::uses_allocator_v<Theirs, std::allocator<int>>;

template <class T>
constexpr bool all_have_traits =
    has_traits_of<future<T>, std::future<T>>&& has_traits_of<
        shared_future<T>, std::shared_future<T>>&& has_traits_of<promise<T>, std::promise<T>>&&
        has_traits_of<packaged_task<T(int)>, std::packaged_task<T(int)>>&&
            std::is_constructible_v<shared_future<T>, future<T>&&>&&
                std::is_nothrow_constructible_v<shared_future<T>, future<T>&&> &&
    !std::is_constructible_v<shared_future<T>, future<T>&> &&
    std::is_same_v<decltype(std::declval<future<T>&>().get()),
                   decltype(std::declval<std::future<T>&>().get())> &&
    std::is_same_v<
        decltype(std::declval<const shared_future<T>&>().get()),
        decltype(std::declval<const std::shared_future<T>&>()
                     .get())>&& noexcept(std::declval<future<T>&>()
                                             .valid())&& noexcept(std::declval<future<T>&>()
                                                                      .share());

static_assert(all_have_traits<int> && all_have_traits<std::string> && all_have_traits<void> &&
              all_have_traits<int&> && all_have_traits<std::unique_ptr<int>> &&
              all_have_traits<const int>);
static_assert(!std::is_constructible_v<packaged_task<int(int)>, void (*)(int)>);
static_assert(std::is_same_v<decltype(packaged_task{[](int, char) { return 1.0; }}),
                             packaged_task<double(int, char)>>);
// Its call operator has qualifiers.
struct const_volatile_call {
    long operator()(char) const volatile { return 0; }
};
struct volatile_reference_call {
    long operator()(char) volatile& noexcept { return 0; }
};
static_assert(
    std::is_same_v<decltype(packaged_task{const_volatile_call{}}), packaged_task<long(char)>>);
static_assert(
    std::is_same_v<decltype(packaged_task{volatile_reference_call{}}), packaged_task<long(char)>>);
static_assert(std::is_same_v<decltype(packaged_task{static_cast<void (*)(int&)>(nullptr)}),
                             packaged_task<void(int&)>>);
static_assert(std::is_same_v<decltype(ums::async([](auto i) { return i; }, 1)), future<int>>);

// --- Shared by all tests ---

class future_test : public conserving_test {};

template <class Call>
void expect_error(future_errc code, Call call) {
    try {
        call();
        ADD_FAILURE() << "threw nothing";
    } catch (const ums::future_error& e) {
        EXPECT_EQ(e.code(), code) << e.what();
    }
}

std::exception_ptr error_of(const char* what) {
    return std::make_exception_ptr(std::runtime_error{what});
}

// Counts its instances.
struct counted {
    explicit counted(int v) : value{v} { ++alive; }
    counted(const counted& other) : value{other.value} { ++alive; }
    counted(counted&& other) noexcept : value{std::exchange(other.value, -1)} { ++alive; }
    counted& operator=(const counted&) = delete;
    ~counted() { --alive; }
    int value;
    static std::atomic<int> alive;
};
std::atomic<int> counted::alive;

// --- promise, future, shared_future ---

TEST_F(future_test, a_value_set_before_or_after_is_got) {
    on_a_fiber_and_on_a_thread([] {
        promise<std::string> before;
        before.set_value("early");
        EXPECT_EQ(before.get_future().get(), "early");

        promise<std::unique_ptr<int>> after;
        future<std::unique_ptr<int>> f = after.get_future();
        fiber on_fiber{[&after] { after.set_value(std::make_unique<int>(7)); }};
        EXPECT_EQ(*f.get(), 7);
        EXPECT_FALSE(f.valid());
        on_fiber.join();

        promise<int> other;
        plain_thread on_thread{[&other] { other.set_value(8); }};
        EXPECT_EQ(other.get_future().get(), 8);
        on_thread.join();
    });
}

TEST_F(future_test, references_and_void_work) {
    on_a_fiber_and_on_a_thread([] {
        int target = 1;
        promise<int&> p;
        future<int&> f = p.get_future();
        p.set_value(target);
        EXPECT_EQ(&f.get(), &target);
        promise<void> v;
        shared_future<void> s = v.get_future();
        v.set_value();
        s.get();
        s.get();
        promise<const int&> c;
        c.set_value(target);
        shared_future<const int&> shared = c.get_future().share();
        EXPECT_EQ(&shared.get(), &target);
    });
}

TEST_F(future_test, an_exception_is_rethrown) {
    on_a_fiber_and_on_a_thread([] {
        promise<int> p;
        future<int> f = p.get_future();
        fiber other{[&p] { p.set_exception(error_of("told")); }};
        try {
            (void)f.get();
            ADD_FAILURE();
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "told");
        }
        other.join();
        promise<int> q;
        q.set_exception(error_of("many"));
        const shared_future<int> s = q.get_future();
        EXPECT_THROW((void)s.get(), std::runtime_error);
        EXPECT_THROW((void)s.get(), std::runtime_error);
    });
}

TEST_F(future_test, each_misuse_has_its_error) {
    on_a_fiber_and_on_a_thread([] {
        promise<int> p;
        future<int> f = p.get_future();
        expect_error(future_errc::future_already_retrieved, [&] { (void)p.get_future(); });
        p.set_value(1);
        expect_error(future_errc::promise_already_satisfied, [&] { p.set_value(2); });
        expect_error(future_errc::promise_already_satisfied,
                     [&] { p.set_exception(error_of("")); });
        expect_error(future_errc::promise_already_satisfied, [&] { p.set_value_at_fiber_exit(2); });
        EXPECT_EQ(f.get(), 1);
        expect_error(future_errc::no_state, [&] { (void)f.get(); });
        expect_error(future_errc::no_state, [&] { f.wait(); });
        expect_error(future_errc::no_state, [&] { (void)f.wait_for(1s); });
        expect_error(future_errc::no_state, [&] { (void)shared_future<int>{}.get(); });
        promise<int> moved = std::move(p);
        expect_error(future_errc::no_state, [&] { p.set_value(3); });
        expect_error(future_errc::no_state, [&] { (void)p.get_future(); });
        expect_error(future_errc::future_already_retrieved, [&] { (void)moved.get_future(); });
    });
}

TEST_F(future_test, a_promise_that_goes_without_a_value_is_broken) {
    on_a_fiber_and_on_a_thread([] {
        future<int> f;
        { f = promise<int>{}.get_future(); }
        expect_error(future_errc::broken_promise, [&] { (void)f.get(); });
        auto p = std::make_unique<promise<void>>();
        shared_future<void> s = p->get_future();
        fiber waiter{[s] { expect_error(future_errc::broken_promise, [&] { s.get(); }); }};
        plain_thread thread{[s] { expect_error(future_errc::broken_promise, [&] { s.get(); }); }};
        p.reset();
        waiter.join();
        thread.join();
        promise<int> assigned;
        f = assigned.get_future();
        assigned = promise<int>{};
        expect_error(future_errc::broken_promise, [&] { (void)f.get(); });
    });
}

TEST_F(future_test, a_value_that_cannot_be_made_leaves_the_promise_as_it_was) {
    struct picky {
        bool throws;
        explicit picky(bool t) : throws{t} {}
        picky(const picky& from) : throws{from.throws} {
            if (throws) throw std::runtime_error{"no copy"};
        }
    };
    promise<picky> p;
    future<picky> f = p.get_future();
    const picky bad{true}, good{false};
    EXPECT_THROW(p.set_value(bad), std::runtime_error);
    EXPECT_EQ(f.wait_for(0s), future_status::timeout);
    p.set_value(good);
    EXPECT_FALSE(f.get().throws);
}

TEST_F(future_test, swap_exchanges_the_states) {
    promise<int> a, b;
    future<int> from_a = a.get_future();
    swap(a, b);
    b.set_value(1);
    EXPECT_EQ(from_a.get(), 1);
    a.set_value(2);
    EXPECT_EQ(a.get_future().get(), 2);
}

TEST_F(future_test, a_promise_takes_its_memory_from_its_allocator) {
    struct counting : std::pmr::memory_resource {
        int held = 0, taken = 0;
        void* do_allocate(std::size_t n, std::size_t a) override {
            ++held, ++taken;
            return std::pmr::new_delete_resource()->allocate(n, a);
        }
        void do_deallocate(void* p, std::size_t n, std::size_t a) override {
            --held;
            std::pmr::new_delete_resource()->deallocate(p, n, a);
        }
        bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }
    } memory;
    {
        promise<counted> p{std::allocator_arg, std::pmr::polymorphic_allocator<>{&memory}};
        EXPECT_EQ(memory.held, 1);
        future<counted> f = p.get_future();
        p.set_value(counted{5});
        EXPECT_EQ(f.get().value, 5);
    }
    EXPECT_EQ(memory.held, 0);
    EXPECT_EQ(memory.taken, 1);
    EXPECT_EQ(counted::alive, 0);
}

TEST_F(future_test, timed_waits_say_whether_it_is_ready_and_none_is_early) {
    on_a_fiber_and_on_a_thread([] {
        promise<int> p;
        future<int> f = p.get_future();
        const auto start = steady_clock::now();
        EXPECT_EQ(f.wait_for(0s), future_status::timeout);
        EXPECT_EQ(f.wait_for(-1s), future_status::timeout);
        EXPECT_EQ(f.wait_until(start - 1s), future_status::timeout);
        EXPECT_EQ(f.wait_for(2ms), future_status::timeout);
        EXPECT_GE(steady_clock::now(), start + 2ms);
        const auto system = std::chrono::system_clock::now() + 2ms;
        EXPECT_EQ(f.wait_until(system), future_status::timeout);
        EXPECT_GE(std::chrono::system_clock::now(), system);
        fiber other{[&p] { p.set_value(1); }};
        EXPECT_EQ(f.wait_for(std::chrono::hours::max()), future_status::ready);
        EXPECT_EQ(f.wait_for(-1s), future_status::ready);
        EXPECT_EQ(f.wait_until(start), future_status::ready);
        EXPECT_EQ(f.get(), 1);
        other.join();
    });
}

TEST_F(future_test, a_stop_ends_the_wait_and_ready_is_preferred) {
    on_a_fiber_and_on_a_thread([] {
        promise<int> p;
        future<int> f = p.get_future();
        std::stop_source stop;
        fiber other{[&] { stop.request_stop(); }};
        EXPECT_FALSE(f.wait(stop.get_token()));
        EXPECT_FALSE(f.wait(stop.get_token()));
        other.join();
        p.set_value(1);
        EXPECT_TRUE(f.wait(stop.get_token()));
        promise<int> q;
        future<int> g = q.get_future();
        plain_thread thread{[&] { q.set_value(2); }};
        EXPECT_TRUE(g.wait(std::stop_source{}.get_token()));
        thread.join();
    });
}

TEST_F(future_test, many_wait_for_one_shared_future_on_fibers_and_threads) {
    ums::run({.processors = 2}, [] {
        constexpr int fibers = scaled(10'000, 300), threads = 4;
        promise<counted> p;
        shared_future<counted> shared = p.get_future();
        std::atomic<int> got = 0;
        auto wait = [&got, shared] {
            EXPECT_EQ(shared.get().value, 42);
            ++got;
        };
        std::vector<fiber> all;
        std::vector<plain_thread> plain;
        for (int i = 0; i < threads; ++i) plain.emplace_back(wait);
        for (int i = 0; i < fibers; ++i) all.emplace_back(wait);
        this_fiber::yield();
        p.set_value(counted{42});
        for (fiber& f : all) f.join();
        for (plain_thread& t : plain) t.join();
        EXPECT_EQ(got, fibers + threads);
        EXPECT_EQ(counted::alive, 1);
    });
    EXPECT_EQ(counted::alive, 0);
}

TEST_F(future_test, a_loop_that_asks_lets_the_other_fiber_run) {
    ums::run({.processors = 1}, [] {
        promise<int> p;
        future<int> f = p.get_future();
        fiber setter{[&p] { p.set_value(1); }};
        while (f.wait_for(0s) != future_status::ready) {
        }
        setter.join();
    });
}

// --- At the fiber's exit ---

TEST_F(future_test, at_fiber_exit_comes_after_the_fiber_locals_have_gone) {
    on_a_fiber_and_on_a_thread([] {
        static std::atomic<bool> is_gone;
        struct leaving {
            ~leaving() {
                this_fiber::yield();
                is_gone = true;
            }
        };
        ums::fiber_local<leaving> local;
        auto check = [&local](auto set) {
            promise<int> p;
            future<int> f = p.get_future();
            is_gone = false;
            auto body = [&, moved = std::move(p)]() mutable {
                (void)*local;
                set(moved);
                EXPECT_EQ(f.wait_for(0s), future_status::timeout);
                (void)promise<int>{std::move(moved)};  // This breaks nothing.
            };
            fiber on_fiber{std::move(body)};
            f.wait();
            EXPECT_TRUE(is_gone);
            on_fiber.join();
            return f.get();
        };
        EXPECT_EQ(check([](promise<int>& p) { p.set_value_at_fiber_exit(3); }), 3);
        EXPECT_EQ(check([](promise<int>& p) { p.set_value_at_thread_exit(4); }), 4);
        EXPECT_THROW(check([](promise<int>& p) { p.set_exception_at_fiber_exit(error_of("")); }),
                     std::runtime_error);
    });
}

TEST_F(future_test, at_fiber_exit_works_on_a_plain_thread_and_for_each_kind) {
    on_a_fiber_and_on_a_thread([] {
        int target = 0;
        promise<void> v;
        promise<int&> r;
        promise<std::string> o;
        future<void> fv = v.get_future();
        future<int&> fr = r.get_future();
        future<std::string> fo = o.get_future();
        plain_thread thread{[&] {
            v.set_value_at_fiber_exit();
            r.set_value_at_fiber_exit(target);
            o.set_value_at_fiber_exit("text");
            EXPECT_EQ(fv.wait_for(0s), future_status::timeout);
            EXPECT_EQ(fr.wait_for(0s), future_status::timeout);
            EXPECT_EQ(fo.wait_for(0s), future_status::timeout);
        }};
        thread.join();
        EXPECT_EQ(fv.wait_for(0s), future_status::ready);
        EXPECT_EQ(&fr.get(), &target);
        EXPECT_EQ(fo.get(), "text");
    });
}

// --- packaged_task ---

TEST_F(future_test, a_task_gives_its_outcome_to_its_future) {
    on_a_fiber_and_on_a_thread([] {
        packaged_task<int(int, std::unique_ptr<int>)> task{
            [](int a, std::unique_ptr<int> b) { return a + *b; }};
        future<int> f = task.get_future();
        fiber{std::move(task), 1, std::make_unique<int>(2)}.join();
        EXPECT_EQ(f.get(), 3);
        EXPECT_FALSE(task.valid());

        packaged_task<void()> throws{[] { throw std::runtime_error{"task"}; }};
        future<void> g = throws.get_future();
        throws();
        EXPECT_THROW(g.get(), std::runtime_error);

        int target = 0;
        packaged_task<int&(int&)> reference{[](int& i) -> int& { return i; }};
        reference(target);
        EXPECT_EQ(&reference.get_future().get(), &target);

        packaged_task<void(int)> drops{[](int i) { return i; }};
        drops(1);
        drops.get_future().get();
    });
}

TEST_F(future_test, a_task_may_be_reset_and_each_misuse_has_its_error) {
    on_a_fiber_and_on_a_thread([] {
        int calls = 0;
        packaged_task<int()> task{[&calls] { return ++calls; }};
        future<int> first = task.get_future();
        expect_error(future_errc::future_already_retrieved, [&] { (void)task.get_future(); });
        task();
        expect_error(future_errc::promise_already_satisfied, [&] { task(); });
        expect_error(future_errc::promise_already_satisfied,
                     [&] { task.make_ready_at_fiber_exit(); });
        task.reset();
        future<int> second = task.get_future();
        task();
        EXPECT_EQ(first.get(), 1);
        EXPECT_EQ(second.get(), 2);
        task.reset();
        future<int> broken = task.get_future();
        task.reset();
        expect_error(future_errc::broken_promise, [&] { (void)broken.get(); });
        broken = task.get_future();
        task = {};
        expect_error(future_errc::broken_promise, [&] { (void)broken.get(); });
        expect_error(future_errc::no_state, [&] { task(); });
        expect_error(future_errc::no_state, [&] { task.reset(); });
        expect_error(future_errc::no_state, [&] { (void)task.get_future(); });
    });
}

TEST_F(future_test, a_task_may_become_ready_at_the_exit) {
    on_a_fiber_and_on_a_thread([] {
        packaged_task<int(int)> task{[](int i) { return i; }};
        future<int> f = task.get_future();
        auto body = [&](int i) {
            i % 2 == 0 ? task.make_ready_at_fiber_exit(i) : task.make_ready_at_thread_exit(i);
            EXPECT_EQ(f.wait_for(0s), future_status::timeout);
        };
        fiber{body, 2}.join();
        EXPECT_EQ(f.get(), 2);
        task.reset();
        f = task.get_future();
        plain_thread{body, 3}.join();
        EXPECT_EQ(f.get(), 3);
    });
}

// --- async ---

TEST_F(future_test, async_runs_on_another_fiber_and_deferred_on_the_waiter) {
    on_a_fiber_and_on_a_thread([] {
        const auto me = this_fiber::get_id();
        auto* id = +[] { return this_fiber::get_id(); };
        EXPECT_NE(ums::async(*id).get(), me);
        EXPECT_NE(ums::async(std::launch::async, id).get(), me);
        future<ums::fiber_id> late = ums::async(std::launch::deferred, id);
        EXPECT_EQ(late.wait_for(1h), future_status::deferred);
        EXPECT_EQ(late.wait_until(steady_clock::now()), future_status::deferred);
        late.wait();
        EXPECT_EQ(late.wait_for(0s), future_status::ready);
        EXPECT_EQ(late.get(), me);
        EXPECT_EQ(
            ums::async({.name = "named"}, [] { return std::string{this_fiber::name()}; }).get(),
            "named");
        bool is_called = false;
        {
            future<void> dropped = ums::async(std::launch::deferred, [&] { is_called = true; });
        }
        EXPECT_FALSE(is_called);
    });
}

TEST_F(future_test, async_passes_copies_results_and_exceptions) {
    on_a_fiber_and_on_a_thread([] {
        for (const std::launch policy : {std::launch::async, std::launch::deferred}) {
            EXPECT_EQ(ums::async(
                          policy, [](int a, std::unique_ptr<int> b) { return a + *b; }, 1,
                          std::make_unique<int>(2))
                          .get(),
                      3);
            int target = 0;
            EXPECT_EQ(&ums::async(
                           policy, [](int& i) -> int& { return i; }, std::ref(target))
                           .get(),
                      &target);
            future<void> f = ums::async(policy, [] { throw std::runtime_error{"async"}; });
            EXPECT_THROW(f.get(), std::runtime_error);
            EXPECT_EQ(ums::async(policy, &std::string::size, std::string{"four"}).get(), 4u);
            shared_future<counted> s = ums::async(policy, [] { return counted{9}; });
            EXPECT_EQ(s.get().value, 9);
        }
        EXPECT_EQ(counted::alive, 0);
    });
}

TEST_F(future_test, the_last_future_of_async_waits_for_the_end) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<bool> may_end = false, ended = false;
        fiber opener{[&] {
            for (int i = 0; i < 10; ++i) this_fiber::yield();
            may_end = true;
        }};
        {
            future<void> f = ums::async([&] {
                while (!may_end) this_fiber::yield();
                ended = true;
            });
        }
        EXPECT_TRUE(ended);
        opener.join();
    });
}

TEST_F(future_test, a_deferred_function_is_called_once_however_many_wait) {
    ums::run({.processors = 2}, [] {
        for (int round = 0; round < scaled(300, 30); ++round) {
            std::atomic<int> calls = 0;
            shared_future<int> f = ums::async(std::launch::deferred, [&calls] {
                this_fiber::yield();
                return ++calls;
            });
            std::vector<fiber> all;
            for (int i = 0; i < 10; ++i) all.emplace_back([f] { EXPECT_EQ(f.get(), 1); });
            for (fiber& one : all) one.join();
        }
    });
}

TEST_F(future_test, when_async_is_ready_all_that_its_fiber_promised_is_too) {
    ums::run({.processors = 2}, [] {
        ums::fiber_local<std::string> local;
        for (int i = 0; i < scaled(300, 30); ++i) {
            promise<int> p;
            future<int> f = p.get_future();
            ums::async([&] {
                local->append("x");
                p.set_value_at_fiber_exit(1);
            }).get();
            EXPECT_EQ(f.wait_for(0s), future_status::ready);
        }
    });
}

TEST_F(future_test, async_without_a_runtime_is_refused) {
    EXPECT_THROW((void)ums::async([] {}), std::system_error);
    EXPECT_EQ(ums::async(std::launch::deferred, [] { return 1; }).get(), 1);
}

int fibonacci(int n) {
    if (n < 2) return n;
    future<int> left = ums::async(&fibonacci, n - 1);
    const int right = fibonacci(n - 2);
    return left.get() + right;
}

TEST_F(future_test, a_tree_of_async_adds_up) {
    ums::run({.processors = 2}, [] { EXPECT_EQ(fibonacci(scaled(17, 11)), scaled(1597, 89)); });
}

// --- A plain thread that ends where it stands ---

// Runs `f` on a thread of its own, which is cancelled while it runs.
template <class F>
void on_a_cancelled_thread(F body) {
    std::thread thread{std::move(body)};
    EXPECT_EQ(::pthread_cancel(thread.native_handle()), 0);
    thread.join();
}

[[noreturn]] void until_cancelled() {
    for (;;) ::pthread_testcancel();
}

TEST_F(future_test, the_end_of_a_thread_inside_a_task_breaks_its_promise) {
    for (const bool at_exit : {false, true}) {
        packaged_task<int()> cancelled{[]() -> int { until_cancelled(); }};
        future<int> f = cancelled.get_future();
        on_a_cancelled_thread(
            [&] { at_exit ? cancelled.make_ready_at_fiber_exit() : cancelled(); });
        expect_error(future_errc::broken_promise, [&] { (void)f.get(); });
        expect_error(future_errc::promise_already_satisfied, [&] { cancelled(); });
    }
    packaged_task<void()> exits{[] { ::pthread_exit(nullptr); }};
    future<void> f = exits.get_future();
    std::thread{[&] { exits(); }}.join();
    expect_error(future_errc::broken_promise, [&] { f.get(); });
}

TEST_F(future_test, the_end_of_a_thread_inside_a_deferred_function_breaks_its_promise) {
    shared_future<int> f = ums::async(std::launch::deferred, []() -> int { until_cancelled(); });
    plain_thread other{[f] {
        while (f.wait_for(0s) == future_status::deferred) {
        }
        expect_error(future_errc::broken_promise, [&] { (void)f.get(); });
    }};
    on_a_cancelled_thread([&f] { (void)f.get(); });
    other.join();
    expect_error(future_errc::broken_promise, [&] { (void)f.get(); });
}

// --- Misuse ---

const child_program sets_no_exception{"sets_no_exception", [](const child_arguments& arguments) {
                                          promise<int> p;
                                          const future<int> f = p.get_future();
                                          if (arguments.empty())
                                              p.set_exception(nullptr);
                                          else
                                              p.set_exception_at_fiber_exit(nullptr);
                                          return 0;
                                      }};

TEST(future_misuse_test, a_set_exception_without_one_ends_the_program) {
    for (const child_arguments& how : {child_arguments{}, child_arguments{"at exit"}}) {
        const child_end end = run_child("sets_no_exception", how);
        EXPECT_NE(end.code, 0);
        EXPECT_NE(end.err.find("set_exception() of no exception"), end.err.npos) << end;
    }
}

// --- Races ---

// The waiter destroys both sides as soon as it can, whatever set_value() is still doing.
TEST_F(future_test, both_sides_may_be_destroyed_right_after_it_is_ready) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(5000, 500); ++i) {
            auto p = std::make_unique<promise<counted>>();
            future<counted> f = p->get_future();
            fiber setter{[at = p.get(), i] {
                if (i % 3 == 0) this_fiber::yield();
                at->set_value(counted{i});
            }};
            if (i % 2 == 0)
                f.wait();
            else
                while (f.wait_for(0s) != future_status::ready) this_fiber::yield();
            p.reset();
            EXPECT_EQ(f.get().value, i);
            setter.join();
        }
        EXPECT_EQ(counted::alive, 0);
    });
}

TEST_F(future_test, a_task_may_be_destroyed_right_after_it_is_ready) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(3000, 300); ++i) {
            auto task = std::make_unique<packaged_task<counted()>>([i] { return counted{i}; });
            future<counted> f = task->get_future();
            fiber caller{[at = task.get()] { (*at)(); }};
            f.wait();
            task.reset();
            EXPECT_EQ(f.get().value, i);
            caller.join();
        }
        EXPECT_EQ(counted::alive, 0);
    });
}

TEST_F(future_test, one_of_many_that_set_it_succeeds) {
    ums::run({.processors = 2}, [] {
        for (int round = 0; round < scaled(500, 50); ++round) {
            promise<int> p;
            future<int> f = p.get_future();
            std::atomic<int> winner = -1, losers = 0;
            std::vector<fiber> all;
            for (int i = 0; i < 8; ++i)
                all.emplace_back([&, i] {
                    try {
                        p.set_value(i);
                        winner = i;
                    } catch (const ums::future_error&) {
                        ++losers;
                    }
                });
            const int value = f.get();
            for (fiber& one : all) one.join();
            EXPECT_EQ(value, winner);
            EXPECT_EQ(losers, 7);
        }
    });
}

TEST_F(future_test, set_value_races_with_deadlines) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int fibers = 8, rounds = scaled(1500, 150), plain_rounds = scaled(100, 20);
        std::atomic<int> got = 0, timeouts = 0;
        auto work = [&](int n, int times) {
            std::minstd_rand random{static_cast<unsigned>(seed + n)};
            for (int i = 0; i < times; ++i) {
                promise<counted> p;
                shared_future<counted> f = p.get_future();
                fiber setter{[&p, i, spins = random() % 400] {
                    for (unsigned s = 0; s < spins; ++s) __builtin_ia32_pause();
                    p.set_value(counted{i});
                }};
                const auto patience = std::chrono::nanoseconds{random() % 30'000};
                fiber other{[f, i, patience, &got, &timeouts] {
                    if (f.wait_for(patience) == future_status::timeout) ++timeouts;
                    EXPECT_EQ(f.get().value, i);
                    ++got;
                }};
                while (f.wait_for(patience) == future_status::timeout) ++timeouts;
                EXPECT_EQ(f.get().value, i);
                ++got;
                setter.join();
                other.join();
            }
        };
        std::vector<fiber> all;
        plain_thread plain{work, 100, plain_rounds};
        for (int i = 0; i < fibers; ++i) all.emplace_back(work, i, rounds);
        for (fiber& f : all) f.join();
        plain.join();
        EXPECT_EQ(got, 2 * (fibers * rounds + plain_rounds));
        EXPECT_EQ(counted::alive, 0);
    });
}

}  // namespace
