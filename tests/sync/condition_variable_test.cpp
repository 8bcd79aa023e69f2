// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/condition_variable.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/cluster.hpp"
#include "ums/jfiber.hpp"
#include "ums/run.hpp"
#include "ums/shared_mutex.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::cv_status;
using ums::fiber;
namespace this_fiber = ums::this_fiber;

[[maybe_unused]] constinit ums::condition_variable static_condition;

// A lock that parks inside its unlock(), while the waiter is already in the list of waiters.
class parking_lock {
public:
    void lock() { mutex_.lock(); }
    void unlock() {
        mutex_.unlock();
        this_fiber::yield();
        // One more wait inside the library.
        fiber{[] { this_fiber::yield(); }}.join();
    }

private:
    ums::mutex mutex_;
};

template <class Condition, class Mutex>
struct pairing {
    using condition = Condition;
    using mutex = Mutex;
};
template <class Mutex>
using any_with = pairing<ums::condition_variable_any, Mutex>;

class condition_base_test : public conserving_test {};

template <class Kind>
class condition_test : public condition_base_test {};
using every_kind = ::testing::Types<pairing<ums::condition_variable, ums::mutex>,
                                    any_with<ums::mutex>, any_with<ums::fair_mutex>,
                                    any_with<ums::recursive_mutex>, any_with<parking_lock>>;
TYPED_TEST_SUITE(condition_test, every_kind);

// Runs a body, on a fiber or on a plain thread.
class runner {
public:
    template <class F>
    runner(bool on_thread, F body) {
        if (on_thread)
            thread_.emplace(std::move(body));
        else
            fiber_ = fiber{std::move(body)};
    }
    void join() { thread_ ? thread_->join() : fiber_.join(); }

private:
    std::optional<plain_thread> thread_;
    fiber fiber_;
};

// Returns when `n` runners have announced themselves under the mutex; then all of them are in the
// list of waiters.
template <class Mutex>
void until_queued(Mutex& m, const int& announced, int n) {
    for (;;) {
        {
            const std::lock_guard guard{m};
            if (announced == n) return;
        }
        this_fiber::yield();
    }
}

TYPED_TEST(condition_test, a_notify_ends_the_wait_of_a_fiber_and_of_a_thread) {
    on_a_fiber_and_on_a_thread([] {
        for (const bool on_thread : {false, true}) {
            typename TypeParam::condition changed;
            typename TypeParam::mutex m;
            int announced = 0;
            bool said = false;
            runner waiter{on_thread, [&] {
                              std::unique_lock lock{m};
                              ++announced;
                              while (!said) changed.wait(lock);
                              EXPECT_TRUE(lock.owns_lock());
                          }};
            until_queued(m, announced, 1);
            {
                const std::lock_guard guard{m};
                said = true;
            }
            changed.notify_one();
            waiter.join();
        }
    });
}

TYPED_TEST(condition_test, a_notify_with_nobody_there_is_not_remembered) {
    on_a_fiber_and_on_a_thread([] {
        typename TypeParam::condition changed;
        typename TypeParam::mutex m;
        changed.notify_one();
        changed.notify_all();
        std::unique_lock lock{m};
        EXPECT_EQ(changed.wait_for(lock, 1us), cv_status::timeout);
    });
}

TYPED_TEST(condition_test, each_notify_one_wakes_one_and_notify_all_the_rest) {
    ums::run({.processors = 2}, [] {
        constexpr int waiters = 20;
        typename TypeParam::condition changed;
        typename TypeParam::mutex m;
        int announced = 0;
        std::atomic<int> woken = 0;
        std::vector<runner> all;
        for (int i = 0; i < waiters; ++i)
            all.emplace_back(i % 4 == 0, [&] {
                std::unique_lock lock{m};
                ++announced;
                // No predicate is needed, because no wait ends without a reason.
                changed.wait(lock);
                ++woken;
            });
        until_queued(m, announced, waiters);
        for (int i = 1; i <= 5; ++i) {
            changed.notify_one();
            while (woken != i) this_fiber::yield();
        }
        changed.notify_all();
        for (runner& one : all) one.join();
        EXPECT_EQ(woken, waiters);
    });
}

TYPED_TEST(condition_test, a_deadline_ends_the_wait_and_none_is_early) {
    on_a_fiber_and_on_a_thread([] {
        typename TypeParam::condition changed;
        typename TypeParam::mutex m;
        std::unique_lock lock{m};
        const auto start = steady_clock::now();
        EXPECT_EQ(changed.wait_for(lock, 2ms), cv_status::timeout);
        EXPECT_GE(steady_clock::now(), start + 2ms);
        EXPECT_EQ(changed.wait_until(lock, start), cv_status::timeout);
        EXPECT_EQ(changed.wait_until(lock, steady_clock::time_point::min()), cv_status::timeout);
        EXPECT_EQ(changed.wait_for(lock, -1h), cv_status::timeout);
        const auto then = std::chrono::system_clock::now() + 1ms;
        while (changed.wait_until(lock, then) != cv_status::timeout) {
        }
        EXPECT_GE(std::chrono::system_clock::now(), then);
        EXPECT_FALSE(changed.wait_for(lock, 1ms, [] { return false; }));
        EXPECT_FALSE(changed.wait_until(lock, then, [] { return false; }));
        EXPECT_TRUE(changed.wait_until(lock, then, [] { return true; }));
        EXPECT_TRUE(lock.owns_lock());
    });
}

TYPED_TEST(condition_test, the_predicate_is_asked_under_the_lock_and_after_the_deadline_once_more) {
    ums::run({.processors = 2}, [] {
        typename TypeParam::condition changed;
        typename TypeParam::mutex m;
        std::unique_lock lock{m};
        int asked = 0;
        EXPECT_TRUE(changed.wait_for(lock, 1ms, [&] {
            EXPECT_TRUE(lock.owns_lock());
            return ++asked == 2;
        }));
        EXPECT_EQ(asked, 2);
    });
}

TYPED_TEST(condition_test, a_stop_ends_the_wait_with_what_the_predicate_says) {
    on_a_fiber_and_on_a_thread([] {
        for (const bool on_thread : {false, true}) {
            typename TypeParam::condition changed;
            typename TypeParam::mutex m;
            int announced = 0;
            std::stop_source stop;
            runner waiter{
                on_thread, [&] {
                    std::unique_lock lock{m};
                    ++announced;
                    EXPECT_FALSE(changed.wait(lock, stop.get_token(), [] { return false; }));
                    EXPECT_TRUE(lock.owns_lock());
                }};
            until_queued(m, announced, 1);
            stop.request_stop();
            waiter.join();
            std::unique_lock lock{m};
            const auto token = stop.get_token();
            EXPECT_FALSE(changed.wait(lock, token, [] { return false; }));
            EXPECT_TRUE(changed.wait(lock, token, [] { return true; }));
            EXPECT_FALSE(changed.wait_for(lock, token, 1h, [] { return false; }));
            EXPECT_FALSE(
                changed.wait_until(lock, token, steady_clock::now() + 1h, [] { return false; }));
            std::stop_source never;
            EXPECT_FALSE(changed.wait_for(lock, never.get_token(), 1us, [] { return false; }));
            EXPECT_FALSE(changed.wait_for(lock, std::stop_token{}, 1us, [] { return false; }));
        }
    });
}

TYPED_TEST(condition_test, waiters_are_notified_in_the_order_in_which_they_came) {
    ums::run({.processors = 2}, [] {
        constexpr int waiters = 50;
        typename TypeParam::condition changed;
        typename TypeParam::mutex m;
        int announced = 0;
        std::vector<int> order;
        std::atomic<int> woken = 0;
        std::vector<runner> all;
        for (int i = 0; i < waiters; ++i) {
            all.emplace_back(i % 8 == 0, [&, i] {
                std::unique_lock lock{m};
                ++announced;
                changed.wait(lock);
                order.push_back(i);
                ++woken;
            });
            until_queued(m, announced, i + 1);
        }
        for (int i = 1; i <= waiters; ++i) {
            changed.notify_one();
            while (woken != i) this_fiber::yield();
        }
        for (runner& one : all) one.join();
        for (int i = 0; i < waiters; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    });
}

// The notifier deletes it before any waiter has the mutex back, and while deadlines and stops come.
TYPED_TEST(condition_test, may_be_destroyed_right_after_notify_all) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int waiters = 6;
        const int rounds = is_scattered() ? 60 : scaled(400, 60);
        std::minstd_rand random{static_cast<unsigned>(seed)};
        for (int round = 0; round < rounds; ++round) {
            auto changed = std::make_unique<typename TypeParam::condition>();
            typename TypeParam::mutex m;
            int announced = 0;
            std::stop_source stop;
            std::vector<runner> all;
            for (int i = 0; i < waiters; ++i) {
                const auto limit = std::chrono::nanoseconds{random() % 50'000};
                // Making a thread is slow, so only now and then.
                all.emplace_back(i == 0 && round % 16 == 0, [&, i, limit] {
                    std::unique_lock lock{m};
                    ++announced;
                    // The condition variable may be gone when the predicate is asked again.
                    bool once = true;
                    auto second = [&] { return !std::exchange(once, false); };
                    switch (i % 3) {
                        case 0:
                            changed->wait(lock);
                            break;
                        case 1:
                            (void)changed->wait_for(lock, limit);
                            break;
                        case 2:
                            changed->wait_for(lock, stop.get_token(), limit, second);
                            break;
                    }
                });
            }
            until_queued(m, announced, waiters);
            fiber stopper;
            if (random() % 4 == 0) stopper = fiber{[stop]() mutable { stop.request_stop(); }};
            {
                std::optional<std::lock_guard<typename TypeParam::mutex>> guard;
                if (random() % 2 == 0) guard.emplace(m);
                changed->notify_all();
                changed.reset();
            }
            for (runner& one : all) one.join();
            if (stopper.joinable()) stopper.join();
        }
    });
}

// A semaphore as users write it with a condition variable; no permit and no wake-up is lost.
TYPED_TEST(condition_test, permits_are_conserved_while_waits_give_up) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int givers = 4, takers = 12;
        const int each = is_scattered() ? 90 : scaled(900, 90);
        typename TypeParam::condition given;
        typename TypeParam::mutex m;
        int permits = 0, taken = 0;
        auto give = [&] {
            for (int i = 0; i < takers / givers * each; ++i) {
                {
                    const std::lock_guard guard{m};
                    ++permits;
                }
                given.notify_one();
                if (i % 8 == 0) this_fiber::yield();
            }
        };
        auto take = [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed + static_cast<unsigned>(n))};
            for (int i = 0; i < each;) {
                std::unique_lock lock{m};
                const auto limit = std::chrono::nanoseconds{random() % 10'000};
                std::stop_source stop;
                bool got = true;
                auto has_permit = [&] { return permits > 0; };
                if (n % 3 == 0)
                    given.wait(lock, has_permit);
                else if (n % 3 == 1)
                    got = given.wait_for(lock, limit, has_permit);
                else
                    got = given.wait_for(lock, stop.get_token(), limit, has_permit);
                if (!got) continue;
                --permits;
                ++taken;
                ++i;
            }
        };
        std::vector<runner> all;
        for (int i = 0; i < givers; ++i) all.emplace_back(i == 0, give);
        for (int i = 0; i < takers; ++i) all.emplace_back(i % 6 == 0, [&, i] { take(i); });
        for (runner& one : all) one.join();
        EXPECT_EQ(permits, 0);
        EXPECT_EQ(taken, takers * each);
    });
}

// The waits below the public ones. They report whether they used up a notify even if a stop came
// too.
bool wait_once(ums::impl::condition_state& c, std::unique_lock<ums::mutex>& lock, bool foreign,
               ums::deadline limit, const std::stop_token* stop) {
    if (!foreign) return ums::impl::condition_calls::wait(c, lock, limit, stop);
    auto unlock = [](void* l) { static_cast<std::unique_lock<ums::mutex>*>(l)->unlock(); };
    const bool notified = ums::impl::condition_calls::wait(c, {&lock, unlock}, limit, stop);
    lock.lock();
    return notified;
}

// Each notify_one() that was sent while a waiter was queued ends exactly one wait, which says so.
// From outside one cannot see whether a waiter with a deadline is still queued. So there are
// patient waiters, too, and a notify is sent only while fewer notifies than those are on their way.
class notify_race_test : public condition_base_test, public ::testing::WithParamInterface<bool> {};

TEST_P(notify_race_test, every_notify_of_a_queued_waiter_wakes_exactly_one) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed, foreign = GetParam()] {
        constexpr int hasty = 12;
        const int rounds = is_scattered() ? 150 : scaled(1500, 100);
        ums::impl::condition_state changed;
        ums::mutex m;
        // Guarded by the mutex:
        std::uint64_t sent = 0, used = 0, patient_queued = 0, gave_up = 0;
        int busy = hasty;
        bool over = false;
        std::vector<std::stop_source> stops(hasty);

        auto note = [&](bool notified) {
            notified ? ++used : ++gave_up;
            EXPECT_LE(used, sent);
        };
        auto wait_patiently = [&] {
            std::unique_lock lock{m};
            while (!over) {
                ++patient_queued;
                EXPECT_TRUE(wait_once(changed, lock, foreign, ums::deadline::max(), nullptr));
                --patient_queued;
                if (!over) note(true);
            }
        };
        auto wait_hastily = [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed + static_cast<unsigned>(n))};
            for (int i = 0; i < rounds; ++i) {
                std::unique_lock lock{m};
                std::stop_source& stop = stops[static_cast<std::size_t>(n)];
                if (stop.stop_requested()) stop = std::stop_source{};
                const std::stop_token token = stop.get_token();
                const auto limit =
                    steady_clock::now() + std::chrono::nanoseconds{random() % 20'000};
                note(
                    wait_once(changed, lock, foreign, limit, random() % 2 == 0 ? &token : nullptr));
            }
            const std::lock_guard guard{m};
            --busy;
        };
        auto notify = [&] {
            for (;;) {
                std::unique_lock lock{m};
                if (busy == 0) return;
                const bool someone_is_queued = sent - used < patient_queued;
                if (someone_is_queued) {
                    ++sent;
                    ums::impl::condition_calls::notify_one(changed);
                }
                lock.unlock();
                this_fiber::yield();
            }
        };
        auto request_stops = [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed + static_cast<unsigned>(n))};
            for (;;) {
                std::unique_lock lock{m};
                if (busy == 0) return;
                std::stop_source stop = stops[random() % stops.size()];
                lock.unlock();
                stop.request_stop();
                this_fiber::yield();
            }
        };
        std::vector<runner> all, patient;
        for (int i = 0; i < 4; ++i) patient.emplace_back(i == 0, wait_patiently);
        for (int i = 0; i < hasty; ++i) all.emplace_back(i == 0, [&, i] { wait_hastily(i); });
        for (int i = 0; i < 2; ++i) all.emplace_back(i == 1, notify);
        all.emplace_back(false, [&] { request_stops(100); });
        for (runner& one : all) one.join();
        for (;;) {  // Waits until the patient waiters have used up what is on its way.
            {
                const std::lock_guard guard{m};
                EXPECT_LE(used, sent);
                if (used >= sent) {
                    over = true;
                    break;
                }
            }
            this_fiber::yield();
        }
        ums::impl::condition_calls::notify_all(changed);
        for (runner& one : patient) one.join();
        EXPECT_EQ(used, sent);
        EXPECT_EQ(patient_queued, 0u);
        EXPECT_GT(gave_up, 0u);
    });
}
INSTANTIATE_TEST_SUITE_P(direct_and_foreign, notify_race_test, ::testing::Bool());

TEST_F(condition_base_test, waits_with_shared_locks_and_locks_of_ones_own) {
    ums::run({.processors = 2}, [] {
        ums::condition_variable_any changed;
        ums::shared_mutex m;
        std::atomic<int> ready = 0;
        bool said = false;
        auto wait = [&] {
            std::shared_lock lock{m};
            ++ready;
            changed.wait(lock, [&] { return said; });
        };
        fiber one{wait}, other{wait};
        while (ready != 2) this_fiber::yield();
        {
            const std::lock_guard guard{m};
            said = true;
        }
        changed.notify_all();
        one.join();
        other.join();
    });
}

const child_program waits_unlocked{"waits_unlocked", [](const child_arguments&) {
                                       ums::run([] {
                                           ums::condition_variable changed;
                                           ums::mutex m;
                                           std::unique_lock lock{m, std::defer_lock};
                                           changed.wait(lock);
                                       });
                                       return 0;
                                   }};

TEST(condition_misuse_test, a_wait_with_a_lock_that_is_not_held_ends_the_program) {
    const child_end end = run_child("waits_unlocked", {}, {});
    EXPECT_NE(end.code, 0);
    EXPECT_NE(end.err.find("with a lock that is not held"), end.err.npos) << end;
}

TEST_F(condition_base_test, the_end_of_a_fiber_or_a_thread_notifies_after_all_of_it_is_gone) {
    ums::run({.processors = 2}, [] {
        for (const bool on_thread : {false, true}) {
            ums::mutex m;
            ums::condition_variable c;
            bool is_over = false;  // Guarded by m.
            std::atomic<int> alive = 0;
            struct counted {
                std::atomic<int>& n;
                explicit counted(std::atomic<int>& all) : n{all} { ++n; }
                ~counted() { --n; }
            };
            runner last{on_thread, [&] {
                            const counted one{alive};
                            std::unique_lock lock{m};
                            is_over = true;
                            ums::notify_all_at_fiber_exit(c, std::move(lock));
                            this_fiber::yield();
                        }};
            {
                std::unique_lock lock{m};
                c.wait(lock, [&] { return is_over; });
                EXPECT_EQ(alive, 0);
            }
            last.join();
        }
    });
}

// On one processor the order of the wake-ups is that in which the two get the mutex.
TEST_F(condition_base_test, the_end_of_a_fiber_notifies_before_it_unlocks) {
    using guard = std::unique_lock<ums::mutex>;
    bool is_alone = false;
    auto order_after = [&](auto end) {
        std::string order;
        ums::run(one_processor, [&] {
            is_alone = ums::cluster::standard().processors() == 1;
            ums::mutex m;
            ums::condition_variable c;
            int announced = 0;
            fiber other;
            fiber waiter{[&] {
                guard lock{m};
                ++announced;
                c.wait(lock);
                order += "waiter ";
            }};
            until_queued(m, announced, 1);
            fiber last{[&] {
                guard lock{m};
                other = fiber{[&] {
                    const guard own{m};
                    order += "other ";
                }};
                // Waits until it waits for the mutex.
                for (int i = 0; i < 10; ++i) this_fiber::yield();
                end(c, std::move(lock));
            }};
            last.join();
            waiter.join();
            other.join();
        });
        return order;
    };
    const std::string by_hand = order_after([](ums::condition_variable& c, guard lock) {
        c.notify_all();
        lock.unlock();
    });
    const std::string other_way = order_after([](ums::condition_variable& c, guard lock) {
        lock.unlock();
        c.notify_all();
    });
    if (!is_alone) GTEST_SKIP() << "needs one processor";
    ASSERT_NE(by_hand, other_way);
    EXPECT_EQ(order_after(&ums::notify_all_at_fiber_exit), by_hand);
}

// A fiber may destroy them that sees under the mutex that it is over, whether it waited or not.
TEST_F(condition_base_test, both_may_be_destroyed_when_the_end_of_a_fiber_was_seen) {
    ums::run({.processors = 2}, [] {
        struct both {
            ums::mutex m;
            ums::condition_variable c;
            bool is_over = false;
        };
        for (int i = 0; i < scaled(3000, 300); ++i) {
            auto shared = std::make_unique<both>();
            std::atomic<bool> is_locked = false;
            fiber last{[&is_locked, at = shared.get()] {
                std::unique_lock lock{at->m};
                is_locked = true;
                at->is_over = true;
                ums::notify_all_at_fiber_exit(at->c, std::move(lock));
            }};
            while (!is_locked) this_fiber::yield();
            {
                std::unique_lock lock{shared->m};
                shared->c.wait(lock, [&] { return shared->is_over; });
            }
            shared.reset();
            last.join();
        }
    });
}

}  // namespace
