// SPDX-License-Identifier: MIT
// variants: mprotect migrate fifo p1 nomembarrier nosync
#include "ums/run.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <dlfcn.h>
#include <fstream>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include "carry/detect/sentinel.hpp"
#include "internal/failing_calls.hpp"
#include "mem/guard.hpp"
#include "mem/slab.hpp"
#include "os/cpu/topology.hpp"
#include "os/thread/thread_state.hpp"
#include "sched/life/plain_join.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/gate.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/variant.hpp"
#include "ums/ums.hpp"

#if !defined(UMS_TEST_ASAN) && !defined(UMS_TEST_TSAN) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define UMS_TEST_REFUSES_THREADS 1

namespace {
constexpr int any_number = -1;
std::atomic<int> threads_granted{any_number};  // This many threads are created, then none.
}  // namespace

// The standard library finds this function before the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
    using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto next = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_create"));
    // Other threads may ask at the same time.
    int left = threads_granted;
    while (left > 0 && !threads_granted.compare_exchange_weak(left, left - 1)) continue;
    if (left == 0) return EAGAIN;
    return next(thread, attributes, start, argument);
}

#endif

namespace {

using namespace ums;
using os::failing_calls;

class runtime_test : public conserving_test {};

// The runtime's errors say whose they are.
std::errc error_of(auto call) { return ::error_of(call, "ums: "); }

bool is_given(const char* variable) { return std::getenv(variable) != nullptr; }

// --- start, stop, start again ---

// Some of everything: fibers that yield, park, sleep, end detached, with large stacks.
void use(int round) {
    std::vector<fiber> all;
    for (int i = 0; i < 20; ++i) {
        const fiber_options how{.name = "worker",
                                .stack_bytes = i % 5 == 0 ? std::size_t{256 * 1024} : 0};
        all.emplace_back(how, [i, round] {
            if (i % 3 == 0) this_fiber::yield();
            if (i % 4 == 0) this_fiber::sleep_for(std::chrono::microseconds{round % 3});
            if (i % 7 == 0) this_fiber::park();
        });
    }
    for (int i = 0; i < 20; i += 7) all[static_cast<std::size_t>(i)].ref().unpark();
    fiber{[] { this_fiber::yield(); }}.detach();
    if (round % 10 == 0) {
        cluster other{{.processors = 1 + static_cast<unsigned>(round / 10 % 2)}};
        fiber{{.cluster = &other}, [] { this_fiber::yield(); }}.join();
    }
    for (fiber& f : all) f.join();
}

options options_of(int round) {
    return {.processors = 1 + static_cast<unsigned>(round % 3),
            .stack_bytes = std::size_t{16 * 1024} << (under_tsan || under_asan ? 3 : round % 4),
            .guard = round % 5 == 0 ? guard_kind::mprotect : guard_kind::automatic,
            .policy = round % 2 == 0 ? policy_kind::work_stealing : policy_kind::global_fifo,
            .pin = round % 11 == 0,
            .warm_stacks = round % 7 == 0 ? 0u : 16'384u,
            .measure_stacks = round % 13 == 0};
}

TEST_F(runtime_test, a_thousand_starts_and_stops_leave_nothing_behind) {
    failing_calls calls;
    for (int round = 0; round < 60; ++round) run(options_of(round), [round] { use(round); });
    const auto threads = conservation::threads();
    const auto fds = conservation::fds();
    const std::size_t mappings = conservation::mappings();
    const int rounds = by_variant(1'000, 200);
    for (int round = 0; round < rounds; ++round) {
        run(options_of(round), [round] { use(round); });
        // An ordinary user's may need the CPU that others have.
        while (!carry::sentinel::collect()) std::this_thread::yield();
        ASSERT_EQ(calls.mapped_bytes(), 0) << "after start " << round;
        ASSERT_EQ(mem::slab_list.load(base::acquire), nullptr);
    }
    EXPECT_EQ(conservation::threads(), threads);
    EXPECT_EQ(conservation::fds(), fds);
    // The C library's arenas and stacks vary a little with what ran at the same time; a start that
    // left one mapping would leave hundreds. ThreadSanitizer keeps more for each fiber that ever
    // existed.
    if (!under_tsan) {
        EXPECT_LE(conservation::mappings(), mappings + 20);
    }
}

TEST_F(runtime_test, stop_is_idempotent_and_the_destructor_stops) {
    for (int i = 0; i < 3; ++i) {
        runtime r{{.processors = 2}};
        fiber{[] {}}.join();
        r.stop();
        EXPECT_EQ(error_of([] { fiber{[] {}}.join(); }), std::errc::operation_not_permitted);
        r.stop();
        runtime next{{.processors = 1}};
        r.stop();  // This does not stop the next one.
        fiber{[] {}}.join();
    }
}

TEST_F(runtime_test, may_be_stopped_by_another_thread_than_started_it) {
    auto r = std::make_unique<runtime>(options{.processors = 2});
    std::atomic<int> ran = 0;
    for (int i = 0; i < 100; ++i) fiber{[&ran] { ++ran; }}.detach();
    std::thread{[&r] { r.reset(); }}.join();
    EXPECT_EQ(ran.load(), 100);
}

TEST_F(runtime_test, the_stop_waits_for_detached_fibers_and_those_they_make) {
    for (int round = 0; round < 10; ++round) {
        std::atomic<int> generations = 0;
        struct chain {
            std::atomic<int>& generations;
            void operator()() const {
                this_fiber::yield();
                if (generations.fetch_add(1) + 1 < 200) fiber{*this}.detach();
            }
        };
        run({.processors = 2}, [&] { fiber{chain{generations}}.detach(); });
        EXPECT_EQ(generations.load(), 200);
    }
}

TEST_F(runtime_test, the_stop_waits_for_sleepers) {
    std::atomic<int> woke = 0;
    run({.processors = 2}, [&] {
        for (int i = 0; i < 50; ++i)
            fiber{[&woke, i] {
                this_fiber::sleep_for(std::chrono::microseconds{i * 100});
                ++woke;
            }}.detach();
    });
    EXPECT_EQ(woke.load(), 50);
}

// A function that cannot be given to a new fiber: copying it throws once the stopper waits.
struct refuses_when_stopped {
    std::atomic<bool>& copying;
    const std::atomic<int>& stopper;  // The id of a kernel thread, or 0.

    refuses_when_stopped(std::atomic<bool>& c, const std::atomic<int>& s)
        : copying{c}, stopper{s} {}
    refuses_when_stopped(const refuses_when_stopped& other)
        : copying{other.copying}, stopper{other.stopper} {
        copying = true;
        while (stopper == 0) this_fiber::yield();
        os::thread_states states;
        if (states.open() != 0) std::abort();
        for (;;) {
            using kind = os::thread_states::kind;
            const auto seen = states.look(stopper).what;
            if (seen == kind::in_call || seen == kind::waiting) throw std::runtime_error{"no copy"};
            this_fiber::yield();
        }
    }
    void operator()() const {}
};

TEST_F(runtime_test, the_stop_goes_on_when_a_fiber_it_waits_for_cannot_be_made) {
    for (int round = 0; round < 20; ++round) {
        std::atomic<bool> copying = false;
        std::atomic<int> stopper = 0;
        runtime r{{.processors = 1}};
        std::thread maker{[&] {
            EXPECT_THROW((fiber{refuses_when_stopped{copying, stopper}}), std::runtime_error);
        }};
        while (!copying) std::this_thread::yield();
        stopper = ::gettid();
        r.stop();
        maker.join();
    }
}

TEST_F(runtime_test, a_cluster_goes_when_a_fiber_it_waits_for_cannot_be_made) {
    run({.processors = 2}, [] {
        for (int round = 0; round < 20; ++round) {
            std::atomic<bool> copying = false;
            std::atomic<int> stopper = 0;
            auto other = std::make_unique<cluster>(cluster_options{.processors = 1});
            const fiber_options there{.cluster = other.get()};
            plain_thread destroyer{[&] {
                while (!copying) std::this_thread::yield();
                stopper = ::gettid();
                other.reset();
            }};
            EXPECT_THROW((fiber{there, refuses_when_stopped{copying, stopper}}),
                         std::runtime_error);
            destroyer.join();
        }
    });
}

// --- one at a time ---

TEST_F(runtime_test, a_second_one_is_refused_while_one_runs) {
    runtime first{{.processors = 1}};
    EXPECT_EQ(error_of([] { runtime second; }), std::errc::device_or_resource_busy);
    EXPECT_EQ(error_of([] { run([] {}); }), std::errc::device_or_resource_busy);
    std::thread{[] {
        EXPECT_EQ(error_of([] { run([] {}); }), std::errc::device_or_resource_busy);
    }}.join();
    fiber{[] {}}.join();  // The first runtime continues.
}

TEST_F(runtime_test, of_many_threads_that_start_one_at_once_one_wins) {
    for (int round = 0; round < scaled(50, 10); ++round) {
        std::atomic<int> waiting = 0, won = 0, refused = 0;
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                ++waiting;
                while (waiting.load() < 4) std::this_thread::yield();
                std::unique_ptr<runtime> mine;
                const std::errc error =
                    error_of([&] { mine = std::make_unique<runtime>(options{.processors = 1}); });
                ++(mine != nullptr ? won : refused);
                if (mine == nullptr) {
                    EXPECT_EQ(error, std::errc::device_or_resource_busy);
                }
                while (won.load() + refused.load() < 4) std::this_thread::yield();
            });
        }
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(won.load(), 1);
        EXPECT_EQ(refused.load(), 3);
    }
}

TEST_F(runtime_test, a_fiber_cannot_start_one) {
    run({.processors = 2}, [] {
        EXPECT_EQ(error_of([] { run([] {}); }), std::errc::operation_not_permitted);
        EXPECT_EQ(error_of([] { runtime inner; }), std::errc::operation_not_permitted);
        std::thread{[] {  // A thread that it makes cannot either, for another reason.
            EXPECT_EQ(error_of([] { runtime inner; }), std::errc::device_or_resource_busy);
        }}
            .join();
    });
}

TEST_F(runtime_test, without_one_there_are_no_fibers_and_no_clusters) {
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(error_of([] { fiber f{[] {}}; }), std::errc::operation_not_permitted);
        EXPECT_EQ(error_of([] { jfiber f{[] {}}; }), std::errc::operation_not_permitted);
        EXPECT_EQ(error_of([] { (void)spawn([] {}); }), std::errc::operation_not_permitted);
        EXPECT_EQ(error_of([] { cluster c; }), std::errc::operation_not_permitted);
        run([] {});  // Nor can it after one has run.
    }
}

// --- a start that fails ---

TEST_F(runtime_test, a_start_with_a_bad_option_leaves_nothing_and_the_next_works) {
    if (!is_given("UMS_PROCESSORS")) {
        EXPECT_EQ(error_of([] { run({.processors = 1025}, [] {}); }), std::errc::invalid_argument);
    }
    EXPECT_EQ(error_of([] { run({.stack_bytes = 1}, [] {}); }), std::errc::invalid_argument);
    EXPECT_EQ(error_of([] { run({.stack_bytes = std::size_t{2} << 30}, [] {}); }),
              std::errc::invalid_argument);
    EXPECT_EQ(error_of([] { run({.spin_ns = ~0u}, [] {}); }), std::errc::invalid_argument);
    EXPECT_EQ(run([] { return 1; }), 1);
}

TEST_F(runtime_test, a_policy_that_cannot_be_made_leaves_nothing_and_the_next_start_works) {
    if (is_given("UMS_POLICY")) GTEST_SKIP() << "the environment's policy wins";
    const options bad{.make_policy = []() -> std::unique_ptr<policy> {
        throw std::runtime_error{"no policy today"};
    }};
    EXPECT_THROW(run(bad, [] {}), std::runtime_error);
    EXPECT_EQ(run([] { return 1; }), 1);
}

#if !defined(UMS_TEST_REFUSES_THREADS)

TEST_F(runtime_test, a_start_that_gets_no_thread_leaves_nothing_and_the_next_works) {
    GTEST_SKIP() << "the sanitizers have a pthread_create of their own";
}

#else

TEST_F(runtime_test, a_start_that_gets_no_thread_leaves_nothing_and_the_next_works) {
    if (is_given("UMS_PROCESSORS")) GTEST_SKIP() << "needs four processors";
    failing_calls calls;
    for (int granted = 0; granted < 4; ++granted) {
        threads_granted = granted;
        EXPECT_EQ(error_of([] { run({.processors = 4}, [] {}); }),
                  std::errc::resource_unavailable_try_again);
        threads_granted = any_number;
        EXPECT_EQ(calls.mapped_bytes(), 0);
        EXPECT_EQ(run({.processors = 4}, [] { return 1; }), 1);
    }
}

TEST_F(runtime_test, a_cluster_that_gets_no_thread_leaves_nothing_and_the_next_works) {
    run({.processors = 2}, [] {
        for (int granted = 0; granted < 4; ++granted) {
            threads_granted = granted;
            EXPECT_EQ(error_of([] { cluster c{{.processors = 4}}; }),
                      std::errc::resource_unavailable_try_again);
            threads_granted = any_number;
            cluster c{{.processors = 4}};
            EXPECT_EQ(spawn({.cluster = &c}, [] { return 1; }).join(), 1);
        }
    });
}

TEST_F(runtime_test, a_processor_that_gets_no_thread_is_not_added) {
    for (const policy_kind kind : {policy_kind::work_stealing, policy_kind::global_fifo}) {
        run({.processors = 2}, [kind] {
            cluster growing{{.processors = 1, .policy = kind}};
            for (unsigned round = 1; round < 5; ++round) {
                for (int again = 0; again < 3; ++again) {
                    threads_granted = 0;
                    EXPECT_EQ(error_of([&] { growing.add_processor(); }),
                              std::errc::resource_unavailable_try_again);
                    threads_granted = any_number;
                    EXPECT_EQ(growing.processors(), round);
                }
                EXPECT_EQ(growing.add_processor(), round);
                int sum = 0;
                for (int i = 0; i < 100; ++i)
                    sum += spawn({.cluster = &growing}, [] { return 1; }).join();
                EXPECT_EQ(sum, 100);
            }
        });
    }
}

// As at the bound: the next kernel thread that comes back takes the processor.
TEST_F(runtime_test, a_refused_thread_leaves_no_processor_waiting_for_ever) {
    if (is_given("UMS_PROCESSORS")) GTEST_SKIP() << "needs one processor";
    runtime started{{.processors = 1, .block = block_detection::off}};
    while (stats().carriers_spare == 0) std::this_thread::yield();
    threads_granted = 0;
    pipe_gate first, second;
    fiber away{[&] {
        EXPECT_TRUE(blocking([&] { return first.pass(); }));  // The processor goes to the spare.
        second.open();
    }};
    fiber without{[&] { EXPECT_TRUE(blocking([&] { return second.pass(); })); }};
    while (stats().carrier_refusals == 0) std::this_thread::yield();
    first.open();
    away.join();
    without.join();
    threads_granted = any_number;
}

// No fiber comes back here, so the maker has to try again.
TEST_F(runtime_test, a_thread_that_was_refused_once_is_asked_for_again) {
    if (is_given("UMS_PROCESSORS")) GTEST_SKIP() << "needs one processor";
    runtime started{{.processors = 1}};
    while (stats().carriers_spare == 0) std::this_thread::yield();
    threads_granted = 0;
    pipe_gate gate;
    fiber first{[&] { EXPECT_TRUE(gate.pass()); }}, second{[&] { EXPECT_TRUE(gate.pass()); }};
    while (stats().carrier_refusals == 0) std::this_thread::yield();
    threads_granted = any_number;
    fiber opens{[&] {
        gate.open();
        gate.open();
    }};
    for (fiber* f : {&first, &second, &opens}) f->join();
}

#endif

// --- what run() returns ---

TEST_F(runtime_test, run_returns_values_of_all_kinds) {
    struct large {
        std::array<int, 100'000> numbers;
    };
    struct alignas(1024) aligned {
        int number;
    };
    struct no_default {
        explicit no_default(int n) : number{n} {}
        int number;
    };
    EXPECT_EQ(run([] { return 42; }), 42);
    EXPECT_EQ(run([] { return std::string(1'000, 'x'); }), std::string(1'000, 'x'));
    EXPECT_EQ(*run([] { return std::make_unique<int>(7); }), 7);
    EXPECT_TRUE(run([] { return true; }));
    EXPECT_EQ(run([] { return no_default{5}; }).number, 5);
    const auto big = std::make_unique<large>(run({.stack_bytes = 4 << 20}, [] {
        large l{};
        l.numbers[99'999] = 3;
        return l;
    }));
    EXPECT_EQ(big->numbers[99'999], 3);
    const aligned a = run([] { return aligned{9}; });
    EXPECT_EQ(a.number, 9);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&a) % 1024, 0u);
    int on_my_stack = 0;
    EXPECT_EQ(run([&] { return &on_my_stack; }), &on_my_stack);
    bool ran = false;
    run([&] { ran = true; });
    EXPECT_TRUE(ran);
    static_assert(std::is_void_v<decltype(run([] {}))>);
    static_assert(std::is_same_v<decltype(run([] { return 1L; })), long>);
}

TEST_F(runtime_test, run_takes_functions_and_objects_that_cannot_be_copied_or_moved) {
    struct immovable {
        int calls = 0;
        immovable() = default;
        immovable(const immovable&) = delete;
        int operator()() { return ++calls; }
    };
    immovable f;
    EXPECT_EQ(run(f), 1);
    EXPECT_EQ(run(f), 2);
    int (*function)() = [] { return 3; };
    EXPECT_EQ(run(function), 3);
}

TEST_F(runtime_test, an_exception_leaves_run_after_everything_has_stopped) {
    std::atomic<int> ended = 0;
    try {
        run({.processors = 2}, [&ended] {
            for (int i = 0; i < 10; ++i)
                fiber{[&ended] {
                    for (int k = 0; k < 10; ++k) this_fiber::yield();
                    ++ended;
                }}.detach();
            throw std::runtime_error{"mine"};
        });
        ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "mine");
        EXPECT_EQ(ended.load(), 10);
        EXPECT_FALSE(conservation::runtime_runs());
    }
    EXPECT_THROW(run([]() -> int { throw 5; }), int);
    EXPECT_EQ(run([] { return 1; }), 1);
}

TEST_F(runtime_test, the_first_fiber_is_called_main) {
    run([] {
        EXPECT_EQ(this_fiber::name(), "main");
        EXPECT_NE(this_fiber::get_id(), fiber_id{});
    });
}

// --- its options ---

TEST_F(runtime_test, each_start_has_its_own_options) {
    for (int round = 0; round < 12; ++round) {
        const options chosen = options_of(round);
        run(chosen, [&chosen] {
            if (!is_given("UMS_PROCESSORS")) {
                EXPECT_EQ(cluster::standard().processors(), chosen.processors);
            }
            const std::string facts = info();
            EXPECT_NE(facts.find("stack: " + std::to_string(chosen.stack_bytes) + " bytes"),
                      facts.npos)
                << facts;
            if (chosen.guard == guard_kind::mprotect) {
                EXPECT_NE(facts.find("guard: mprotect"), facts.npos) << facts;
            }
            const char* const given = std::getenv("UMS_POLICY");
            const policy_kind in_force = given != nullptr ? *policy_named(given) : chosen.policy;
            EXPECT_NE(facts.find("policy: " + std::string{name_of(in_force)} + ":"), facts.npos)
                << facts;
        });
    }
}

TEST_F(runtime_test, a_policy_of_ones_own_is_made_anew_at_each_start) {
    if (is_given("UMS_POLICY")) GTEST_SKIP() << "the environment's policy wins";
    struct counting : policy {
        explicit counting(std::atomic<int>& n) : alive{n} { ++alive; }
        ~counting() override { --alive; }
        void attach(unsigned) override {}
        void detach(unsigned) override {}
        void ready(fiber_ref f, unsigned) noexcept override {
            const std::lock_guard guard{lock};
            queue.push_back(f);
        }
        fiber_ref next(unsigned) noexcept override {
            const std::lock_guard guard{lock};
            return queue.pop_front();
        }
        bool empty(unsigned) const noexcept override {
            const std::lock_guard guard{lock};
            return queue.empty();
        }
        std::atomic<int>& alive;
        mutable std::mutex lock;
        fiber_queue queue;
    };
    std::atomic<int> alive = 0, made = 0;
    for (int round = 1; round <= 5; ++round) {
        run({.processors = 2,
             .make_policy =
                 [&] {
                     ++made;
                     return std::make_unique<counting>(alive);
                 }},
            [&] {
                EXPECT_EQ(alive.load(), 1);
                use(round);
            });
        EXPECT_EQ(alive.load(), 0);
        EXPECT_EQ(made.load(), round);
    }
}

std::set<int> affinity() {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    std::set<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) cpus.insert(cpu);
    return cpus;
}

// The CPUs that the fibers of each processor may run on. Pinned fibers stay where their creator
// runs.
std::vector<std::set<int>> affinity_of_each_processor(cluster& of) {
    std::vector<std::set<int>> each;
    std::mutex lock;
    std::vector<fiber> all;
    for (int i = 0; i < 200; ++i)
        all.emplace_back(fiber_options{.cluster = &of}, [&] {
            const auto mine = affinity();
            {
                const std::lock_guard guard{lock};
                each.push_back(mine);
            }
            this_fiber::yield();
        });
    for (fiber& f : all) f.join();
    return each;
}

TEST_F(runtime_test, pinned_processors_are_confined_to_one_cpu_each) {
    const std::set<int> all_cpus = affinity();
    run({.processors = os::usable_cpus(), .pin = true}, [&] {
        for (const auto& cpus : affinity_of_each_processor(cluster::standard())) {
            EXPECT_EQ(cpus.size(), 1u);
            EXPECT_TRUE(all_cpus.contains(*cpus.begin()));
        }
        EXPECT_EQ(fiber::hardware_concurrency(), all_cpus.size());
    });
    EXPECT_EQ(affinity(), all_cpus);
}

TEST_F(runtime_test, a_cluster_made_by_a_pinned_fiber_may_use_every_cpu) {
    const std::set<int> all_cpus = affinity();
    run({.processors = 1, .pin = true}, [&] {
        cluster loose{{.processors = 2}};
        loose.add_processor();
        for (const auto& cpus : affinity_of_each_processor(loose)) EXPECT_EQ(cpus, all_cpus);
        // Its first processor is on the first CPU, its second on the next.
        cluster confined{{.processors = 1, .pin = true}};
        confined.add_processor();
        std::set<int> first;
        fiber{{.pinned = true, .cluster = &confined}, [&] { first = affinity(); }}.join();
        EXPECT_EQ(first, std::set<int>{os::nth_usable_cpu(0)});
        confined.remove_processor();
        confined.add_processor();
        for (const auto& cpus : affinity_of_each_processor(confined)) EXPECT_EQ(cpus.size(), 1u);
    });
}

TEST_F(runtime_test, its_kernel_threads_are_named_after_cluster_and_processor) {
    if (is_given("UMS_PROCESSORS")) GTEST_SKIP() << "needs three processors";
    runtime started{{.processors = 3}};
    const auto named = [](const std::string& name) {
        int n = 0;
        for (const std::string& tid : conservation::threads()) {
            std::ifstream file{"/proc/self/task/" + tid + "/comm"};
            std::string line;
            n += std::getline(file, line) && line == name;
        }
        return n;
    };
    for (const char* name : {"ums main/0", "ums main/1", "ums main/2"}) {
        while (named(name) == 0) std::this_thread::yield();  // Each thread names itself.
        EXPECT_EQ(named(name), 1);
    }
}

TEST_F(runtime_test, many_processors_start_and_stop) {
    const unsigned n = static_cast<unsigned>(scaled(256, 64));
    run({.processors = n}, [n] {
        if (!is_given("UMS_PROCESSORS")) {
            EXPECT_EQ(cluster::standard().processors(), n);
        }
        std::vector<fiber> all;
        for (int i = 0; i < 1'000; ++i) all.emplace_back([] { this_fiber::yield(); });
        for (fiber& f : all) f.join();
    });
}

// --- exit() in a fiber ---

const child_program exits_on_a_fiber{"exits_on_a_fiber", [](const child_arguments& a) {
                                         static runtime started;
                                         static cluster own{{.name = "own"}};
                                         fiber_options where;
                                         if (a.at(0) == "own") where.cluster = &own;
                                         fiber{where, [] { std::exit(9); }}.join();
                                         return 0;
                                     }};

TEST_F(runtime_test, exit_on_a_fiber_of_a_static_runtime_or_cluster_ends_with_its_code) {
    for (const char* where : {"standard", "own"}) {
        const child_end end = run_child("exits_on_a_fiber", {where});
        EXPECT_EQ(end.code, 9) << end;
        EXPECT_EQ(end.err, "");
    }
}

// --- misuse ---

const child_program keeps_a_handle{"keeps_a_handle", [](const child_arguments& a) {
                                       auto* leaked = new fiber;
                                       {
                                           runtime started;
                                           *leaked = fiber{{.name = "forgotten"}, [] {}};
                                           if (a.at(0) == "joined") leaked->join();
                                       }
                                       std::fprintf(stderr, "stopped\n");
                                       delete leaked;
                                       return 0;
                                   }};

// The thread is held in a signal's handler until the stop waits for it.
TEST_F(runtime_test, the_stop_waits_for_a_plain_thread_that_is_in_join) {
    std::signal(SIGUSR1, [](int) {
        while (!ums::sched::plain_joins.are_awaited()) sched_yield();
    });
    std::atomic<bool> may_end{false};
    ums::runtime r{{.processors = 1}};
    ums::fiber yields{[&] {
        while (!may_end) ums::this_fiber::yield();
    }};
    std::thread joins{[&] { yields.join(); }};
    while (!ums::sched::plain_joins.any()) sched_yield();
    pthread_kill(joins.native_handle(), SIGUSR1);
    may_end = true;
    r.stop();
    joins.join();
    std::signal(SIGUSR1, SIG_DFL);
    EXPECT_FALSE(ums::sched::plain_joins.any());
}

// In the function that it runs itself, while the fiber of the other one has ended: the runtime is
// there for what that calls.
TEST_F(runtime_test, the_stop_waits_for_a_plain_thread_that_forks_and_joins) {
    for (int round = 0; round < 100; ++round) {
        ums::runtime r{{.processors = 1}};
        std::atomic<bool> has_begun{false}, stops{false};
        int forked = 0;
        std::thread forks{[&] {
            const auto last = [&] {
                has_begun = true;
                while (!stops) sched_yield();
                for (int n = round; n > 0; --n) sched_yield();
                ums::fork_join([&] { ++forked; }, [] {});
                ums::fiber{[&] { ++forked; }}.join();
            };
            if (round % 2 == 0)
                ums::parallel_for(0, 2, 1, [&](int i) { i == 1 ? last() : void(); });
            else
                ums::fork_join([] {}, last);
        }};
        while (!has_begun) sched_yield();
        stops = true;
        r.stop();
        forks.join();
        EXPECT_EQ(forked, 2);
        EXPECT_FALSE(ums::sched::plain_joins.any());
    }
}

TEST_F(runtime_test, stopping_before_a_handle_was_joined_or_detached_is_reported) {
    const child_end good = run_child("keeps_a_handle", {"joined"});
    EXPECT_EQ(good.code, 0) << good;
    const child_end bad = run_child("keeps_a_handle", {"kept"});
    EXPECT_EQ(bad.signal, SIGABRT) << bad;
    EXPECT_EQ(
        bad.err.find("ums: the runtime was stopped before all handles of fibers were joined or "
                     "detached"),
        0u)
        << bad;
    EXPECT_EQ(bad.err_lines(), 1u) << bad;
}

const child_program keeps_a_cluster{"keeps_a_cluster", [](const child_arguments&) {
                                        run([] { new cluster{}; });
                                        return 0;
                                    }};

TEST_F(runtime_test, stopping_before_a_cluster_was_destroyed_is_reported) {
    const child_end end = run_child("keeps_a_cluster");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_EQ(end.err.find("ums: the runtime was stopped before a cluster was destroyed"), 0u)
        << end;
}

const child_program stops_itself{"stops_itself", [](const child_arguments&) {
                                     runtime started;
                                     fiber{{.name = "the stopper"}, [&] { started.stop(); }}.join();
                                     return 0;
                                 }};

TEST_F(runtime_test, a_fiber_that_stops_it_is_reported) {
    const child_end end = run_child("stops_itself");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_EQ(end.err.find("ums: a fiber cannot stop the runtime"), 0u) << end;
    EXPECT_NE(end.err.find("\"the stopper\""), end.err.npos) << end;
}

}  // namespace
