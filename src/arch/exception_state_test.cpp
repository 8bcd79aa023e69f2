// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "arch/exception_state.hpp"

#include <atomic>
#include <exception>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;

class exception_state_test : public conserving_test {};

// A sanitizer's frames are larger.
constexpr std::size_t room = scaled(64, 512) * std::size_t{1024};

// Reads the id each time; a thread-local would be cached across a switch.
[[gnu::noinline]] long kernel_thread() { return ::syscall(SYS_gettid); }

// Every way to stop running and to continue, perhaps elsewhere.
enum class way { yield, park, sleep, join, migrate };
constexpr way all_ways[] = {way::yield, way::park, way::sleep, way::join, way::migrate};

void give_way(way how, cluster& elsewhere) {
    switch (how) {
        case way::yield:
            this_fiber::yield();
            break;
        case way::park: {
            fiber waker{[me = this_fiber::ref()] { me.unpark(); }};
            this_fiber::park();
            waker.join();
            break;
        }
        case way::sleep:
            this_fiber::sleep_for(std::chrono::nanoseconds{1});
            break;
        case way::join:
            fiber{[] { this_fiber::yield(); }}.join();
            break;
        case way::migrate:
            this_fiber::migrate(elsewhere);
            this_fiber::migrate(cluster::standard());
            break;
    }
}

// Runs the test's body for each way, while other fibers disturb it: they yield inside their own
// catch blocks and unwinding.
template <class F>
void for_each_way(F body) {
    run({.processors = 2}, [&body] {
        cluster elsewhere{{.processors = 1}};
        std::atomic<bool> done = false;
        auto disturb = [&done] {
            struct slow_end {
                ~slow_end() { this_fiber::yield(); }
            };
            while (!done.load()) {
                try {
                    slow_end unwound;
                    throw 1;
                } catch (int) {
                    this_fiber::yield();
                }
            }
        };
        fiber others[] = {fiber{disturb}, fiber{disturb}, fiber{disturb}};
        for (const way how : all_ways) {
            fiber{{.stack_bytes = room},
                  [&] {
                      for (int i = 0; i < 20; ++i) body([&] { give_way(how, elsewhere); });
                  }}
                .join();
        }
        done = true;
        for (fiber& f : others) f.join();
    });
}

TEST_F(exception_state_test, a_caught_exception_stays_current_across_a_switch) {
    for_each_way([](auto give) {
        try {
            throw std::runtime_error{"mine"};
        } catch (const std::runtime_error& e) {
            const std::exception_ptr before = std::current_exception();
            give();
            EXPECT_STREQ(e.what(), "mine");
            EXPECT_TRUE(std::current_exception() == before);
            EXPECT_EQ(std::uncaught_exceptions(), 0);
        }
        EXPECT_TRUE(std::current_exception() == nullptr);
    });
}

TEST_F(exception_state_test, a_caught_exception_can_be_rethrown_after_a_switch) {
    for_each_way([](auto give) {
        int reached = 0;
        try {
            try {
                throw std::string{"mine"};
            } catch (...) {
                give();
                ++reached;
                throw;
            }
        } catch (const std::string& s) {
            give();
            ++reached;
            EXPECT_EQ(s, "mine");
        }
        EXPECT_EQ(reached, 2);
    });
}

TEST_F(exception_state_test, nested_handlers_keep_their_exceptions_in_order) {
    for_each_way([](auto give) {
        try {
            throw 1;
        } catch (int one) {
            give();
            try {
                give();
                throw 2L;
            } catch (long two) {
                give();
                try {
                    throw '3';
                } catch (char three) {
                    give();
                    EXPECT_EQ(three, '3');
                }
                EXPECT_EQ(two, 2);
                EXPECT_THROW(std::rethrow_exception(std::current_exception()), long);
            }
            EXPECT_EQ(one, 1);
            EXPECT_THROW(std::rethrow_exception(std::current_exception()), int);
        }
    });
}

TEST_F(exception_state_test, a_destructor_that_runs_during_unwinding_may_switch) {
    for_each_way([](auto give) {
        struct slow_end {
            decltype(give)& give_way_;
            int& seen;
            ~slow_end() {
                const int before = std::uncaught_exceptions();
                give_way_();
                seen = before == std::uncaught_exceptions() ? before : -1;
            }
        };
        int seen = 0;
        try {
            slow_end last{give, seen};
            EXPECT_EQ(std::uncaught_exceptions(), 0);
            throw std::runtime_error{"mine"};
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "mine");
        }
        EXPECT_EQ(seen, 1);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
    });
}

TEST_F(exception_state_test,
       a_destructor_that_runs_during_unwinding_may_throw_and_catch_across_switches) {
    for_each_way([](auto give) {
        struct busy_end {
            decltype(give)& give_way_;
            int& deepest;
            ~busy_end() {
                struct innermost {
                    decltype(give)& give_way_;
                    int& deepest;
                    ~innermost() {
                        give_way_();
                        deepest = std::uncaught_exceptions();
                    }
                };
                try {
                    innermost i{give_way_, deepest};
                    throw 2;
                } catch (int n) {
                    give_way_();
                    EXPECT_EQ(n, 2);
                    EXPECT_EQ(std::uncaught_exceptions(), 1);
                }
            }
        };
        int deepest = 0;
        try {
            busy_end last{give, deepest};
            throw 1L;
        } catch (long n) {
            EXPECT_EQ(n, 1);
        }
        EXPECT_EQ(deepest, 2);
    });
}

TEST_F(exception_state_test, a_fiber_made_inside_a_handler_or_unwinding_starts_without_exceptions) {
    run({.processors = 2}, [] {
        for (const launch when : {launch::post, launch::dispatch}) {
            const fiber_options options{.stack_bytes = room, .launch = when};
            auto clean = [] {
                EXPECT_TRUE(std::current_exception() == nullptr);
                EXPECT_EQ(std::uncaught_exceptions(), 0);
                EXPECT_THROW(throw 2, int);
                this_fiber::yield();
                EXPECT_EQ(std::uncaught_exceptions(), 0);
            };
            struct spawning_end {
                decltype(clean)& body;
                const fiber_options& options_;
                ~spawning_end() {
                    fiber{options_, body}.join();
                    EXPECT_EQ(std::uncaught_exceptions(), 1);
                }
            };
            try {
                spawning_end last{clean, options};
                throw 1;
            } catch (int n) {
                fiber{options, clean}.join();
                EXPECT_EQ(n, 1);
                EXPECT_TRUE(std::current_exception() != nullptr);
            }
        }
    });
}

TEST_F(exception_state_test, an_exception_travels_between_fibers) {
    run({.processors = 2}, [] {
        for (int i = 0; i < scaled(500, 100); ++i) {
            std::exception_ptr carried;
            fiber{[&carried, i] {
                try {
                    throw std::runtime_error{std::to_string(i)};
                } catch (...) {
                    carried = std::current_exception();
                    this_fiber::yield();
                }
            }}.join();
            try {
                std::rethrow_exception(carried);
            } catch (const std::runtime_error& e) {
                EXPECT_EQ(e.what(), std::to_string(i));
            }
            auto value = spawn([i]() -> int { throw i; });
            try {
                value.join();
                ADD_FAILURE() << "join() did not throw";
            } catch (int n) {
                EXPECT_EQ(n, i);
            }
        }
    });
}

TEST_F(exception_state_test, nested_exceptions_unfold_after_switches) {
    for_each_way([](auto give) {
        try {
            try {
                throw std::runtime_error{"inner"};
            } catch (...) {
                give();
                std::throw_with_nested(std::logic_error{"outer"});
            }
        } catch (const std::exception& outer) {
            give();
            EXPECT_STREQ(outer.what(), "outer");
            try {
                std::rethrow_if_nested(outer);
                ADD_FAILURE() << "nothing was nested";
            } catch (const std::runtime_error& inner) {
                give();
                EXPECT_STREQ(inner.what(), "inner");
            }
        }
    });
}

// --- everything at once ---

struct payload {
    int owner;
    std::uint64_t serial;
};

class storm {
public:
    storm(std::uint64_t seed, int owner, cluster& elsewhere, std::atomic<long>& wrong)
        : rng_{seed}, owner_{owner}, elsewhere_{elsewhere}, wrong_{wrong} {}

    void run(int rounds) {
        for (int i = 0; i < rounds; ++i) {
            try {
                descend(4);
            } catch (const payload& p) {
                check(p.owner == owner_);
            }
            check(std::current_exception() == nullptr && std::uncaught_exceptions() == 0);
            threads_.insert(kernel_thread());
        }
    }
    [[nodiscard]] std::size_t threads() const { return threads_.size(); }

private:
    void check(bool right) {
        if (!right) wrong_.fetch_add(1, std::memory_order_relaxed);
    }
    void pause() {
        if (rng_() % 2 != 0) return;
        give_way(all_ways[rng_() % 8 == 0 ? rng_() % std::size(all_ways) : 0], elsewhere_);
    }

    // May throw a payload of this fiber.
    void descend(int depth) {
        struct last {
            storm& s;
            int depth;
            int expected;
            ~last() {
                const int before = std::uncaught_exceptions();
                s.check(before == expected || before == expected + 1);
                const std::exception_ptr current = std::current_exception();
                s.pause();
                s.check(std::uncaught_exceptions() == before);
                s.check(std::current_exception() == current);
                if (depth > 0 && s.rng_() % 4 == 0) {
                    try {
                        s.descend(depth - 1);
                    } catch (const payload& p) {
                        s.check(p.owner == s.owner_);
                    }
                    s.check(std::uncaught_exceptions() == before);
                }
            }
        };
        const std::exception_ptr around = std::current_exception();
        const int uncaught = std::uncaught_exceptions();
        std::uint64_t serial = 0;
        try {
            last l{*this, depth, uncaught};
            pause();
            if (depth > 0 && rng_() % 2 == 0) descend(depth - 1);
            if (rng_() % 2 == 0) throw payload{owner_, serial = rng_()};
        } catch (const payload& p) {
            check(p.owner == owner_ && (serial == 0 || p.serial == serial));
            check(std::uncaught_exceptions() == uncaught);
            const std::exception_ptr mine = std::current_exception();
            const std::uint64_t kept = p.serial;
            pause();
            check(p.serial == kept && std::current_exception() == mine);
            if (depth > 0 && rng_() % 3 == 0) {
                try {
                    descend(depth - 1);
                } catch (...) {
                    pause();
                    check(std::current_exception() != mine);
                }
                check(p.serial == kept && std::current_exception() == mine);
            }
            if (rng_() % 3 == 0) throw;
        }
        check(std::current_exception() == around && std::uncaught_exceptions() == uncaught);
    }

    std::mt19937_64 rng_;
    const int owner_;
    cluster& elsewhere_;
    std::atomic<long>& wrong_;
    std::set<long> threads_;
};

void many_storms(const options& chosen) {
    const std::uint64_t seed = test_seed();
    std::atomic<long> wrong = 0;
    std::atomic<std::size_t> most_threads = 0;
    run(chosen, [&] {
        cluster elsewhere{{.processors = 1}};
        std::vector<fiber> all;
        for (int f = 0; f < scaled(100, 40); ++f) {
            all.emplace_back(fiber_options{.stack_bytes = room}, [&, f] {
                storm s{seed + static_cast<unsigned>(f), f, elsewhere, wrong};
                s.run(scaled(60, 15));
                std::size_t most = most_threads.load();
                while (s.threads() > most &&
                       !most_threads.compare_exchange_weak(most, s.threads())) {
                }
            });
        }
        for (fiber& f : all) f.join();
    });
    EXPECT_EQ(wrong.load(), 0);
    if (chosen.migrate && std::getenv("UMS_PROCESSORS") == nullptr) {
        EXPECT_GE(most_threads.load(), 2u) << "no fiber has changed its carrier";
    }
}

TEST_F(exception_state_test, many_fibers_throw_and_catch_interleaved) {
    many_storms({.processors = 1});
}

TEST_F(exception_state_test, many_fibers_throw_and_catch_on_two_processors) {
    many_storms({.processors = 2});
}

TEST_F(exception_state_test, many_fibers_throw_and_catch_while_every_switch_changes_the_carrier) {
    many_storms({.processors = 3, .migrate = true});
}

}  // namespace
