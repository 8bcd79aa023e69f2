// SPDX-License-Identifier: MIT
// variants: mprotect migrate fifo p1 nomembarrier nosync policies
#include "ums/fiber.hpp"

#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <pthread.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/scale.hpp"
#include "ums/last_error.hpp"
#include "ums/offload.hpp"
#include "ums/run.hpp"
#include "ums/scope.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::fiber;
namespace this_fiber = ums::this_fiber;

class fiber_test : public conserving_test {};

// Some steps that the compiler cannot remove.
void compute_steps(int steps) {
    for (int i = 0; i < steps; ++i) asm volatile("");
}

// --- arguments ---

TEST_F(fiber_test, runs_its_function_once) {
    on_a_fiber_and_on_a_thread([] {
        int runs = 0;
        fiber f{[&] { ++runs; }};
        f.join();
        EXPECT_EQ(runs, 1);
    });
}

int global = 0;
void add_to_global(int a, int b) { global += a + b; }

TEST_F(fiber_test, calls_function_pointers) {
    on_a_fiber_and_on_a_thread([] {
        global = 0;
        fiber{add_to_global, 1, 2}.join();
        fiber{&add_to_global, 10, 20}.join();
        EXPECT_EQ(global, 33);
    });
}

TEST_F(fiber_test, calls_member_functions_on_pointers_references_copies_and_smart_pointers) {
    struct counter {
        int value = 0;
        int* seen = nullptr;
        void add(int n) { value += n; }
        void report() const { *seen = value; }
    };
    on_a_fiber_and_on_a_thread([] {
        int seen = 0;
        counter c{1, &seen};
        fiber{&counter::add, &c, 2}.join();
        EXPECT_EQ(c.value, 3);
        fiber{&counter::add, std::ref(c), 4}.join();
        EXPECT_EQ(c.value, 7);
        fiber{&counter::add, c, 100}.join();  // A copy.
        EXPECT_EQ(c.value, 7);
        fiber{&counter::report, std::make_unique<counter>(c)}.join();
        EXPECT_EQ(seen, 7);
    });
}

TEST_F(fiber_test, takes_move_only_callables_and_arguments) {
    on_a_fiber_and_on_a_thread([] {
        int got = 0;
        auto argument = std::make_unique<int>(5);
        auto captured = std::make_unique<int>(6);
        fiber f{[&got, kept = std::move(captured)](std::unique_ptr<int> a) { got = *a + *kept; },
                std::move(argument)};
        EXPECT_EQ(argument, nullptr);
        EXPECT_EQ(captured, nullptr);
        f.join();
        EXPECT_EQ(got, 11);
    });
}

TEST_F(fiber_test, copies_arguments_unless_they_are_reference_wrappers) {
    on_a_fiber_and_on_a_thread([] {
        int copied = 1, referred = 1;
        fiber f{[](int a, int& b) { b += ++a; }, copied, std::ref(referred)};
        f.join();
        EXPECT_EQ(copied, 1);
        EXPECT_EQ(referred, 3);
    });
}

TEST_F(fiber_test, decays_arrays_and_string_literals) {
    on_a_fiber_and_on_a_thread([] {
        std::string got;
        const char text[] = "abc";
        fiber{[&](const char* a, std::string b) { got = a + b; }, text, "def"}.join();
        EXPECT_EQ(got, "abcdef");
    });
}

TEST_F(fiber_test, calls_the_callable_and_passes_the_arguments_as_rvalues) {
    struct rvalue_only {
        int* calls;
        void operator()(std::string&& s) && { *calls += static_cast<int>(s.size()); }
    };
    on_a_fiber_and_on_a_thread([] {
        int calls = 0;
        fiber{rvalue_only{&calls}, std::string{"four"}}.join();
        EXPECT_EQ(calls, 4);
    });
}

TEST_F(fiber_test, takes_arguments_of_any_type) {
    on_a_fiber_and_on_a_thread([] {
        int first = 0, second = 0;
        fiber{[&](std::allocator_arg_t, std::tuple<int> n, std::any what) {
                  first = std::get<0>(n);
                  second = std::any_cast<int>(what);
              },
              std::allocator_arg, std::tuple{3}, std::any{5}}
            .join();
        EXPECT_EQ(first, 3);
        EXPECT_EQ(second, 5);
        bool is_called = false;
        fiber{[&](std::any what) { is_called = what.has_value(); }, std::any{1}}.join();
        EXPECT_TRUE(is_called);
        fiber{[&](std::allocator_arg_t, std::allocator<int>) { is_called = false; },
              std::allocator_arg, std::allocator<int>{}}
            .join();
        EXPECT_FALSE(is_called);
    });
}

// Counts its instances; copying one throws when the fuse has burnt down.
struct bomb {
    static inline std::atomic<int> alive = 0;
    static inline std::atomic<int> fuse = 0;
    bomb() { ++alive; }
    bomb(const bomb&) {
        if (fuse.fetch_sub(1) == 0) throw std::runtime_error{"a copy failed"};
        ++alive;
    }
    ~bomb() { --alive; }
};

template <std::size_t bytes>
void fails_to_copy() {
    bomb::alive = 0;
    {
        const bomb a, b, c;
        bool ran = false;
        auto call = [&ran, ballast = std::array<char, bytes>{}](
                        const bomb&, const bomb&, const bomb&) { ran = ballast[0] == 0; };
        // Thousands of times, so that a leaked stack would not fit.
        for (int i = 0; i < scaled(20'000, 300); ++i) {
            bomb::fuse = i % 3;
            EXPECT_THROW((fiber{call, a, b, c}), std::runtime_error);
            EXPECT_EQ(bomb::alive, 3);
        }
        EXPECT_FALSE(ran);
        bomb::fuse = 1000;
        fiber{call, a, b, c}.join();  // The next fiber works.
        EXPECT_TRUE(ran);
    }
    EXPECT_EQ(bomb::alive, 0);
}

TEST_F(fiber_test, an_exception_while_copying_arguments_leaves_nothing_behind) {
    on_a_fiber_and_on_a_thread([] { fails_to_copy<1>(); });
}

TEST_F(fiber_test, an_exception_while_copying_arguments_to_the_heap_leaves_nothing_behind) {
    on_a_fiber_and_on_a_thread([] { fails_to_copy<40'000>(); });
}

TEST_F(fiber_test, an_aborted_start_does_not_count_as_a_fiber) {
    ums::run({.processors = 2}, [] {
        const bomb b;
        bomb::fuse = 0;
        const auto before = ums::stats();
        EXPECT_THROW((fiber{[](const bomb&) {}, b}), std::runtime_error);
        std::thread{[&b] {
            bomb::fuse = 0;
            EXPECT_THROW((fiber{[](const bomb&) {}, b}), std::runtime_error);
        }}.join();
        EXPECT_EQ(ums::stats().spawned, before.spawned);
    });
}

TEST_F(fiber_test, destroys_callable_and_arguments_before_join_returns) {
    on_a_fiber_and_on_a_thread([] {
        bomb::fuse = 1000;
        const int before = bomb::alive;
        fiber f{[b = bomb{}](const bomb&) {}, bomb{}};
        EXPECT_GE(bomb::alive, before);
        f.join();
        EXPECT_EQ(bomb::alive, before);
    });
}

template <std::size_t bytes, std::size_t alignment>
void carries() {
    struct alignas(alignment) block {
        std::array<unsigned char, bytes> data;
    };
    block b;
    for (std::size_t i = 0; i < bytes; ++i) b.data[i] = static_cast<unsigned char>(i * 7);
    bool is_aligned = false, is_equal = false;
    fiber{[&](const block& got) {
              is_aligned = reinterpret_cast<std::uintptr_t>(&got) % alignment == 0;
              is_equal = got.data == b.data;
          },
          b}
        .join();
    EXPECT_TRUE(is_aligned) << bytes << " bytes aligned to " << alignment;
    EXPECT_TRUE(is_equal) << bytes << " bytes aligned to " << alignment;
}

TEST_F(fiber_test, carries_large_and_over_aligned_callables) {
    ums::runtime started{{.processors = 2}};
    carries<1, 1>();
    carries<64, 64>();
    carries<200, 128>();
    carries<4096, 4096>();
    carries<8192, 8192>();  // More than a page: on the heap.
    carries<15'000, 8>();
    carries<17'000, 8>();  // More than a quarter of the stack: on the heap.
    carries<1'000'000, 64>();
}

// --- handles ---

TEST_F(fiber_test, a_default_one_is_not_joinable_and_has_no_id) {
    const fiber none;
    EXPECT_FALSE(none.joinable());
    EXPECT_EQ(none.get_id(), fiber::id{});
    EXPECT_FALSE(none.ref());
}

TEST_F(fiber_test, moves_and_swaps) {
    static_assert(!std::is_copy_constructible_v<fiber> && !std::is_copy_assignable_v<fiber>);
    static_assert(std::is_nothrow_move_constructible_v<fiber>);
    on_a_fiber_and_on_a_thread([] {
        int runs = 0;
        fiber a{[&] { ++runs; }};
        const fiber::id id = a.get_id();
        EXPECT_TRUE(a.joinable());
        fiber b{std::move(a)};
        EXPECT_FALSE(a.joinable());
        EXPECT_EQ(a.get_id(), fiber::id{});
        EXPECT_EQ(b.get_id(), id);
        a = std::move(b);
        EXPECT_FALSE(b.joinable());
        EXPECT_EQ(a.get_id(), id);
        a.swap(b);
        EXPECT_EQ(b.get_id(), id);
        swap(a, b);
        EXPECT_EQ(a.get_id(), id);
        EXPECT_FALSE(b.joinable());
        a.join();
        EXPECT_EQ(runs, 1);
    });
}

TEST_F(fiber_test, lives_in_containers) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> sum = 0;
        std::vector<fiber> all;
        for (int i = 0; i < 100; ++i) all.emplace_back([&sum, i] { sum += i; });
        std::reverse(all.begin(), all.end());
        for (fiber& f : all) f.join();
        EXPECT_EQ(sum, 4950);
    });
}

const child_program destroys_joinable{"destroys_joinable", [](const child_arguments& a) {
                                          ums::run([&a] {
                                              fiber f{[] { this_fiber::park(); }};
                                              if (a.at(0) == "assign") f = fiber{};
                                          });
                                          return 0;
                                      }};

TEST_F(fiber_test, destroying_or_overwriting_a_joinable_one_terminates) {
    for (const char* how : {"destroy", "assign"}) {
        const child_end end = run_child("destroys_joinable", {how});
        EXPECT_TRUE(end.signal == SIGABRT || (under_asan && end.code > 0)) << how << ": " << end;
        EXPECT_NE(end.err.find("joinable"), end.err.npos) << how << ": " << end;
        EXPECT_NE(end.err.find("join, detach or move it"), end.err.npos) << how << ": " << end;
    }
}

const child_program unparks_nobody{"unparks_nobody", [](const child_arguments& a) {
                                       ums::run([&a] {
                                           const ums::fiber_ref nobody;
                                           if (a.at(0) == "one") nobody.unpark();
                                           if (a.at(0) == "all") ums::unpark_all({&nobody, 1});
                                           if (a.at(0) == "tag") static_cast<void>(nobody.tag());
                                       });
                                       return 0;
                                   }};

TEST_F(fiber_test, a_reference_to_nobody_is_reported) {
    for (const auto& [what, line] : {std::pair{"one", "ums: unpark() of an empty fiber_ref"},
                                     {"all", "ums: unpark_all() of an empty fiber_ref"},
                                     {"tag", "ums: a fiber_ref that names no fiber"}}) {
        const child_end end = run_child("unparks_nobody", {what});
        EXPECT_TRUE(end.signal == SIGABRT || (under_asan && end.code > 0)) << what << ": " << end;
        EXPECT_EQ(end.err.find(line), 0u) << what << ": " << end;
    }
}

const child_program throws{"throws", [](const child_arguments&) {
                               ums::run([] {
                                   fiber{{.name = "the thrower"},
                                         [] { throw std::runtime_error{"nobody catches this"}; }}
                                       .join();
                               });
                               return 0;
                           }};

TEST_F(fiber_test, an_exception_that_leaves_the_function_terminates_with_what_and_name) {
    const child_end end = run_child("throws");
    EXPECT_TRUE(end.signal == SIGABRT || (under_asan && end.code > 0)) << end;
    EXPECT_NE(end.err.find("std::runtime_error: nobody catches this"), end.err.npos) << end;
    EXPECT_NE(end.err.find("the thrower"), end.err.npos) << end;
}

// By pthread_exit() in functions of several kinds, or by a cancellation.
const child_program ends_its_thread{"ends_its_thread", [](const child_arguments& a) {
                                        const auto leave = [] { ::pthread_exit(nullptr); };
                                        const ums::fiber_options leaver{.name = "the leaver"};
                                        ums::run({.processors = 1}, [&] {
                                            if (a.at(0) == "main") leave();
                                            if (a.at(0) == "spawn")
                                                ums::spawn(leaver, leave).join();
                                            if (a.at(0) == "scope") {
                                                ums::scope all;
                                                all.spawn(leaver, leave);
                                                all.join();
                                            }
                                            if (a.at(0) == "offload") ums::offload(leave);
                                            fiber{leaver,
                                                  [&] {
                                                      if (a.at(0) == "exit") leave();
                                                      ::pthread_cancel(::pthread_self());
                                                      ::pthread_testcancel();
                                                  }}
                                                .join();
                                        });
                                        return 0;
                                    }};

TEST_F(fiber_test, one_that_ends_its_kernel_thread_is_told_what_to_do_instead) {
    if (under_tsan) GTEST_SKIP() << "ThreadSanitizer's pthread_exit() does not know fibers";
    for (const std::string how : {"exit", "cancel", "main", "spawn", "scope", "offload"}) {
        const child_end end = run_child("ends_its_thread", {how});
        EXPECT_TRUE(end.signal == SIGABRT || (under_asan && end.code > 0)) << how << ": " << end;
        EXPECT_NE(end.err.find("pthread_exit()"), end.err.npos) << how << ": " << end;
        EXPECT_NE(end.err.find(how == "main"      ? "\"main\""
                               : how == "offload" ? "ums::offload()"
                                                  : "the leaver"),
                  end.err.npos)
            << how << ": " << end;
        EXPECT_NE(end.err.find("Return from the f"), end.err.npos) << end;
    }
}

// --- errno ---

TEST_F(fiber_test, the_last_error_is_the_fibers_after_a_wait_on_whatever_thread) {
    on_a_fiber_and_on_a_thread([] {
        std::vector<fiber> all;
        for (int i = 1; i <= 20; ++i)
            all.emplace_back([i] {
                for (int k = 0; k < 50; ++k) {
                    ums::set_last_error(i + k);
                    this_fiber::yield();
                    ASSERT_EQ(ums::last_error(), i + k);
                }
                EXPECT_EQ(::close(-1), -1);
                EXPECT_EQ(ums::last_error(), EBADF);
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(::close(-1), -1);
        EXPECT_EQ(ums::last_error(), EBADF);
    });
}

// --- ids ---

TEST_F(fiber_test, its_id_is_the_same_inside_and_outside) {
    on_a_fiber_and_on_a_thread([] {
        fiber::id inside;
        fiber f{[&] { inside = this_fiber::get_id(); }};
        const fiber::id outside = f.get_id();
        EXPECT_EQ(f.ref().id(), outside);
        f.join();
        EXPECT_EQ(inside, outside);
        EXPECT_NE(inside, fiber::id{});
        EXPECT_EQ(f.get_id(), fiber::id{});
    });
}

TEST_F(fiber_test, a_plain_thread_has_no_id) {
    ums::runtime started;
    EXPECT_EQ(this_fiber::get_id(), fiber::id{});
}

TEST_F(fiber_test, ids_are_never_used_twice) {
    std::set<fiber::id> all;
    std::size_t made = 0;
    for (int restart = 0; restart < 2; ++restart) {
        std::vector<std::vector<fiber::id>> seen(5);
        auto make = [](std::vector<fiber::id>& ids) {
            for (int round = 0; round < 10; ++round) {
                std::vector<fiber> some;
                for (int i = 0; i < scaled(1000, 30); ++i) {
                    some.emplace_back([] {});
                    ids.push_back(some.back().get_id());
                }
                for (fiber& f : some) f.join();  // Their stacks are used again.
            }
        };
        {
            ums::runtime started{{.processors = 2}};
            std::vector<fiber> makers;
            for (int i = 1; i < 5; ++i) makers.emplace_back(make, std::ref(seen[i]));
            make(seen[0]);
            for (fiber& f : makers) f.join();
        }
        for (const auto& ids : seen) {
            made += ids.size();
            all.insert(ids.begin(), ids.end());
        }
    }
    EXPECT_EQ(all.size(), made);
    EXPECT_FALSE(all.contains(fiber::id{}));
}

TEST_F(fiber_test, ids_are_ordered_hashable_and_streamable) {
    ums::runtime started;
    fiber a{[] {}}, b{[] {}};
    const fiber::id ia = a.get_id(), ib = b.get_id();
    a.join();
    b.join();
    EXPECT_NE(ia, ib);
    EXPECT_NE(ia < ib, ib < ia);
    EXPECT_EQ(ia <= ib, ia < ib);
    EXPECT_EQ(ia <=> ia, std::strong_ordering::equal);
    EXPECT_LT(fiber::id{}, std::min(ia, ib));
    const std::unordered_set<fiber::id> set{ia, ib, ia};
    EXPECT_EQ(set.size(), 2u);
    EXPECT_TRUE(set.contains(ib));
    std::ostringstream text;
    text << ia;
    EXPECT_EQ(text.str(), std::to_string(ia.value()));
    std::wostringstream wide;
    wide << ia;
    EXPECT_EQ(wide.str(), std::to_wstring(ia.value()));
    // Functions of the namespace, as those of std::thread::id.
    EXPECT_TRUE(ums::operator==(ia, ia));
    EXPECT_TRUE(ums::operator<=>(ia, ib) != 0);
}

TEST_F(fiber_test, its_native_handle_is_its_reference) {
    static_assert(std::is_same_v<fiber::native_handle_type, ums::fiber_ref>);
    EXPECT_EQ(fiber{}.native_handle(), ums::fiber_ref{});
    ums::runtime started;
    fiber f{[] {}};
    EXPECT_EQ(f.native_handle(), f.ref());
    f.join();
}

// --- join ---

TEST_F(fiber_test, join_after_the_end_returns_at_once) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<bool> ended = false;
        int written = 0;
        fiber f{[&] {
            written = 1;
            ended = true;
        }};
        while (!ended) this_fiber::yield();
        // The fiber ends now or has ended.
        for (int i = 0; i < 100; ++i) this_fiber::yield();
        f.join();
        EXPECT_EQ(written, 1);
    });
}

TEST_F(fiber_test, join_before_the_end_waits) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<bool> joining = false;
        int written = 0;
        fiber f{[&] {
            while (!joining) this_fiber::yield();
            for (int i = 0; i < 1000; ++i) this_fiber::yield();
            written = 1;
        }};
        joining = true;
        f.join();
        EXPECT_EQ(written, 1);
        EXPECT_FALSE(f.joinable());
    });
}

TEST_F(fiber_test, is_joined_by_another_fiber_than_its_creator) {
    on_a_fiber_and_on_a_thread([] {
        int written = 0;
        fiber f{[&] { written = 1; }};
        fiber joiner{[g = std::move(f), &written]() mutable {
            g.join();
            EXPECT_EQ(written, 1);
            written = 2;
        }};
        joiner.join();
        EXPECT_EQ(written, 2);
    });
}

TEST_F(fiber_test, made_by_a_thread_is_joined_by_a_fiber_and_the_other_way_round) {
    ums::runtime started{{.processors = 2}};
    int written = 0;
    fiber made_by_thread{[&] { written = 1; }};
    fiber made_by_fiber;
    fiber{[&] {
        made_by_thread.join();
        EXPECT_EQ(written, 1);
        made_by_fiber = fiber{[&] { written = 2; }};
    }}.join();
    made_by_fiber.join();
    EXPECT_EQ(written, 2);
}

TEST_F(fiber_test, many_threads_create_and_join) {
    ums::runtime started{{.processors = 2}};
    std::atomic<int> runs = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < scaled(5000, 200); ++i) {
                int local = 0;
                fiber f{[&] { ++local; }};
                f.join();
                ASSERT_EQ(local, 1);
                ++runs;
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(runs, 4 * scaled(5000, 200));
}

TEST_F(fiber_test, joining_itself_is_refused_and_leaves_it_joinable) {
    ums::run([] {
        fiber f;
        std::atomic<bool> assigned = false;
        std::atomic<std::errc> error{};
        f = fiber{[&] {
            while (!assigned) this_fiber::yield();
            error = error_of([&] { f.join(); });
        }};
        assigned = true;
        while (error == std::errc{}) this_fiber::yield();
        EXPECT_EQ(error, std::errc::resource_deadlock_would_occur);
        EXPECT_TRUE(f.joinable());
        f.join();
    });
}

TEST_F(fiber_test, joining_or_detaching_what_is_not_joinable_is_refused) {
    ums::run([] {
        fiber none;
        EXPECT_EQ(error_of([&] { none.join(); }), std::errc::invalid_argument);
        EXPECT_EQ(error_of([&] { none.detach(); }), std::errc::invalid_argument);
        fiber f{[] {}};
        f.join();
        EXPECT_EQ(error_of([&] { f.join(); }), std::errc::invalid_argument);
        try {
            f.join();
        } catch (const std::system_error& e) {
            EXPECT_NE(std::string{e.what()}.find("ums: join(): expected a joinable handle"),
                      std::string::npos)
                << e.what();
        }
        fiber g{[] {}};
        g.detach();
        EXPECT_FALSE(g.joinable());
        EXPECT_EQ(error_of([&] { g.join(); }), std::errc::invalid_argument);
        EXPECT_EQ(error_of([&] { g.detach(); }), std::errc::invalid_argument);
    });
}

TEST_F(fiber_test, cannot_be_made_without_a_runtime) {
    EXPECT_EQ(error_of([] { fiber{[] {}}; }), std::errc::operation_not_permitted);
    bomb::alive = 0;
    EXPECT_EQ(error_of([] { fiber{[b = bomb{}] {}}; }), std::errc::operation_not_permitted);
    EXPECT_EQ(bomb::alive, 0);
}

// Each fiber joins the one before it: the whole chain unwinds from one end.
TEST_F(fiber_test, a_chain_of_joins_unwinds) {
    on_a_fiber_and_on_a_thread([] {
        constexpr int length = scaled(10'000, 500);
        std::atomic<bool> go = false;
        int depth = 0;
        fiber last{[&] {
            while (!go) this_fiber::yield();
        }};
        for (int i = 0; i < length; ++i)
            last = fiber{[before = std::exchange(last, {}), &depth]() mutable {
                before.join();
                ++depth;
            }};
        go = true;
        last.join();
        EXPECT_EQ(depth, length);
    });
}

// The end and the join meet at every distance in time.
TEST_F(fiber_test, join_and_end_race) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(8000, 1000); ++i) {
            int written = 0;
            fiber f{[&, spins = i % 97] {
                compute_steps(spins);
                written = i + 1;
            }};
            compute_steps(i % 89);
            f.join();
            ASSERT_EQ(written, i + 1);
        }
    });
}

// --- detach ---

TEST_F(fiber_test, detached_ones_all_run_before_run_returns) {
    std::atomic<int> runs = 0;
    constexpr int many = scaled(10'000, 1000);
    ums::run({.processors = 2}, [&] {
        for (int i = 0; i < many; ++i)
            fiber{[&runs, i] {
                for (int y = 0; y < i % 5; ++y) this_fiber::yield();
                if (i % 3 == 0) fiber{[&runs] { ++runs; }}.detach();
                ++runs;
            }}.detach();
    });
    EXPECT_EQ(runs, many + (many + 2) / 3);
}

TEST_F(fiber_test, detaching_after_the_end_frees_it) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(5000, 200); ++i) {
            std::atomic<bool> ended = false;
            fiber f{[&] { ended = true; }};
            while (!ended) this_fiber::yield();
            f.detach();
        }
    });
}

TEST_F(fiber_test, detach_and_end_race) {
    std::atomic<int> runs = 0;
    constexpr int many = scaled(8000, 1000);
    on_a_fiber_and_on_a_thread([&] {
        for (int i = 0; i < many; ++i) {
            fiber f{[&runs, spins = i % 97] {
                compute_steps(spins);
                ++runs;
            }};
            compute_steps(i % 89);
            f.detach();
        }
    });
    EXPECT_EQ(runs, 2 * many);
}

// --- recursion ---

void grow_tree(int depth, std::atomic<int>& leaves) {
    if (depth == 0) {
        ++leaves;
        return;
    }
    fiber left{grow_tree, depth - 1, std::ref(leaves)};
    fiber right{grow_tree, depth - 1, std::ref(leaves)};
    left.join();
    right.join();
}

TEST_F(fiber_test, creates_fibers_recursively) {
    on_a_fiber_and_on_a_thread([] {
        constexpr int depth = scaled(13, 8);
        std::atomic<int> leaves = 0;
        grow_tree(depth, leaves);
        EXPECT_EQ(leaves, 1 << depth);
    });
}

void descend(int depth, int& deepest) {
    deepest = std::max(deepest, depth);
    if (depth < scaled(5000, 500)) fiber{descend, depth + 1, std::ref(deepest)}.join();
}

TEST_F(fiber_test, nests_to_any_depth) {
    ums::run({.processors = 2}, [] {
        int deepest = 0;
        descend(0, deepest);
        EXPECT_EQ(deepest, scaled(5000, 500));
    });
}

TEST_F(fiber_test, hardware_concurrency_is_at_least_one) {
    EXPECT_GE(fiber::hardware_concurrency(), 1u);
}

}  // namespace
