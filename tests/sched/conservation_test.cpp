// SPDX-License-Identifier: MIT

// Every built-in policy: random spawns, parks, unparks, migrations, posts, yields, joins and
// changes of
// the number of processors lose no fiber and run none twice. TEST_STEPS=10000000 is the long form.

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

namespace this_fiber = ums::this_fiber;

class conservation_test : public conserving_test {};

constexpr ums::policy_kind all_kinds[] = {
    ums::policy_kind::work_stealing,
    ums::policy_kind::global_fifo,
    ums::policy_kind::local_locked,
    ums::policy_kind::local_mpsc,
    ums::policy_kind::local_mpsc_intrusive,
    ums::policy_kind::priority,
    ums::policy_kind::earliest_deadline_first,
    ums::policy_kind::fair_share,
};

class trial {
public:
    trial(ums::policy_kind kind, std::uint64_t seed, int steps)
        : seed_{seed},
          steps_{steps},
          first_{{.name = "first", .processors = 2, .policy = kind}},
          second_{{.name = "second", .processors = 1, .policy = kind}} {}

    void run() {
        std::vector<ums::fiber> all;
        for (unsigned i = 0; i < count; ++i)
            all.emplace_back(some_options(i), [this, i] { live(i); });
        for (unsigned i = 0; i < count; ++i) refs_[i] = all[i].ref();
        can_unpark_ = true;
        // From outside, too: until all have ended, every fiber is unparked again and again.
        std::atomic<bool> stop{false};
        plain_thread outside{[&] {
            std::mt19937_64 random{seed_ + count};
            while (!stop) refs_[random() % count].unpark();
        }};
        std::mt19937_64 random{seed_ + count + 1};
        while (ended_ != count) {
            refs_[random() % count].unpark();
            if (random() % 1024 == 0) first_.add_processor();
            if (random() % 1024 == 0 && first_.processors() > 2) first_.remove_processor();
            this_fiber::yield();
        }
        stop = true;
        outside.join();
        for (ums::fiber& f : all) f.join();
        EXPECT_EQ(twice_, 0);
        while (children_begun_ != children_ended_) this_fiber::yield();  // Those that were posted.
    }

private:
    static constexpr unsigned count = 32;

    ums::fiber_options some_options(unsigned i) {
        return {.cluster = i % 3 == 0 ? &second_ : &first_,
                .priority = static_cast<int>(i % 8) - 4,
                .deadline = i % 2 == 0 ? ums::deadline::max()
                                       : ums::deadline_after(std::chrono::microseconds{i * 100}),
                .weight = 50 + i % 5 * 100,
                .group = i % 4};
    }

    // A fiber that runs twice finds itself running.
    template <class Switch>
    void leave_by(unsigned i, Switch leave) {
        runs_[i] = false;
        leave();
        if (runs_[i].exchange(true)) ++twice_;
    }

    void live(unsigned i) {
        std::mt19937_64 random{seed_ + i};
        runs_[i] = true;
        while (!can_unpark_) leave_by(i, [] { this_fiber::yield(); });
        for (int step = 0; step < steps_; ++step) {
            switch (random() % 16) {
                case 0: {
                    ums::cluster& to = random() % 2 == 0 ? first_ : second_;
                    leave_by(i, [&] {
                        // Two of the first one's processors are never removed.
                        if (random() % 2 == 0)
                            this_fiber::migrate(to);
                        else
                            this_fiber::migrate(to, &to == &first_ ? random() % 2 : 0);
                    });
                    break;
                }
                case 1: {
                    ++children_begun_;
                    ums::fiber_options options = some_options(static_cast<unsigned>(random() % 64));
                    options.launch = random() % 2 == 0 ? ums::launch::post : ums::launch::dispatch;
                    leave_by(i, [&] {
                        ums::fiber child{options, [this] {
                                             this_fiber::yield();
                                             ++children_ended_;
                                         }};
                        child.join();
                    });
                    break;
                }
                case 2:
                case 3:
                case 4:
                    leave_by(i, [] { this_fiber::park(); });
                    break;
                case 5:
                    leave_by(i, [] { this_fiber::sleep_for(std::chrono::nanoseconds{1}); });
                    break;
                case 6:
                    leave_by(i, [] { this_fiber::yield(); });
                    break;
                case 7: {
                    const unsigned n = random() % 4;
                    children_begun_ += static_cast<int>(n);
                    std::vector<std::function<void()>> some(n, [this] { ++children_ended_; });
                    leave_by(i, [&] { (random() % 2 == 0 ? first_ : second_).post_each(some); });
                    break;
                }
                case 8: {
                    const unsigned from = random() % (count - 4);
                    ums::unpark_all(std::span{refs_}.subspan(from, random() % 4));
                    break;
                }
                default:
                    refs_[random() % count].unpark();
            }
        }
        runs_[i] = false;
        ++ended_;
        // Other fibers may still unpark it.
        while (ended_ != count)
            this_fiber::park_until(ums::deadline_after(std::chrono::milliseconds{1}));
    }

    const std::uint64_t seed_;
    const int steps_;
    std::array<ums::fiber_ref, count> refs_;
    std::array<std::atomic<bool>, count> runs_{};
    std::atomic<bool> can_unpark_{false};
    std::atomic<unsigned> ended_{0};
    std::atomic<int> twice_{0}, children_begun_{0}, children_ended_{0};
    ums::cluster first_, second_;
};

TEST_F(conservation_test, random_steps_lose_no_fiber_and_run_none_twice) {
    const std::uint64_t seed = test_seed();
    const int steps = sized("TEST_STEPS", 32'000, 1'600) / 32;
    for (const auto kind : all_kinds) {
        SCOPED_TRACE(ums::name_of(kind));
        ums::run({.processors = 1}, [&] {
            trial one{kind, seed, steps};
            one.run();
        });
    }
}

}  // namespace
