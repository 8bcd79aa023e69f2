// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
//
// Channels and condition variables that become biased to a processor (sched/lock/bias.hpp), and
// lose the bias.
#include "sched/lock/bias.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "os/lock.hpp"
#include "sched/lock/bias_count.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/variant.hpp"
#include "ums/channel.hpp"
#include "ums/cluster.hpp"
#include "ums/condition_variable.hpp"
#include "ums/fiber.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/select.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::channel;
using ums::channel_status;
using ums::fiber;
using calls = ums::impl::channel_calls;
namespace this_fiber = ums::this_fiber;

// Biases as often as possible.
class bias_test : public conserving_test {
protected:
    bias_test() { ums::sched::bias_count::first.store(1, ums::base::relaxed); }
    ~bias_test() override { ums::sched::bias_count::first.store(32, ums::base::relaxed); }
};

// A channel whose word the test can see.
struct open_channel {
    explicit open_channel(std::size_t capacity = 0) {
        calls::open(state, ums::impl::element_type_of<int>, capacity);
    }
    ~open_channel() { calls::destroy(state); }
    channel_status send(int n) { return calls::send(state, &n); }
    std::optional<int> receive() {
        int n = 0;
        if (calls::receive(state, &n) != channel_status::ok) return std::nullopt;
        return n;
    }
    bool is_biased() { return state.receivers.lock > ums::os::lock_states::held; }
    ums::impl::channel_state state;
};

// Uses the channel until it is biased, if this variant of the test allows a bias.
void use(open_channel& c, int times = 1'000) {
    fiber sender{[&] {
        for (int i = 0; i < times; ++i) ASSERT_EQ(c.send(i), channel_status::ok);
    }};
    for (int i = 0; i < times; ++i) ASSERT_EQ(c.receive(), i);
    sender.join();
}

TEST_F(bias_test, a_channel_that_two_fibers_of_one_processor_use_becomes_biased) {
    ums::run(one_processor, [] {
        open_channel c;
        use(c);
        EXPECT_TRUE(c.is_biased());
        use(c);
        EXPECT_TRUE(c.is_biased());
    });
}

TEST_F(bias_test, what_works_in_the_ordinary_way_gives_the_bias_back) {
    ums::run(one_processor, [] {
        open_channel c{ums::unbounded};
        use(c);
        ASSERT_TRUE(c.is_biased());
        EXPECT_EQ(calls::size(c.state), 0u);
        EXPECT_FALSE(calls::is_closed(c.state));
        EXPECT_TRUE(c.is_biased());
        for (int i = 0; i < 10'000; ++i) ASSERT_EQ(c.send(i), channel_status::ok);
        for (int i = 0; i < 10'000; ++i) ASSERT_EQ(c.receive(), i);
        EXPECT_TRUE(c.is_biased());
        calls::close(c.state);
        EXPECT_EQ(c.receive(), std::nullopt);
        EXPECT_EQ(c.send(1), channel_status::closed);
    });
}

// Neither empty nor full: a fiber's sends and receives are only copies.
TEST_F(bias_test, a_thread_may_close_a_channel_that_nobody_waits_in) {
    ums::run(one_processor, [] {
        for (int round = 0; round < scaled(300, 30); ++round) {
            open_channel c{64};
            use(c, 100);
            int sent = 0, received = 0;
            while (sent < 32) ASSERT_EQ(c.send(sent++), channel_status::ok);
            ASSERT_TRUE(c.is_biased());
            plain_thread closer{[&] { calls::close(c.state); }};
            while (c.send(sent) == channel_status::ok) {
                ++sent;
                ASSERT_EQ(c.receive(), received++);
            }
            while (const auto got = c.receive()) ASSERT_EQ(got, received++);
            EXPECT_EQ(received, sent);
            closer.join();
        }
    });
}

// A deadline takes the ordinary way, between sends and receives that take the short one.
TEST_F(bias_test, sends_of_both_ways_keep_their_order) {
    ums::run(one_processor, [] {
        open_channel c{64};
        use(c, 100);
        int sent = 0, received = 0;
        while (sent < 32) ASSERT_EQ(c.send(sent++), channel_status::ok);
        for (int i = 0; i < 1'000; ++i) {
            int n = sent++;
            ASSERT_EQ(i % 3 == 0 ? calls::send_until(c.state, &n, ums::deadline::max(), nullptr)
                                 : c.send(n),
                      channel_status::ok);
            ASSERT_EQ(i % 5 == 0 ? calls::receive_until(c.state, &n, ums::deadline::max(), nullptr)
                                 : calls::receive(c.state, &n),
                      channel_status::ok);
            ASSERT_EQ(n, received++);
        }
        EXPECT_EQ(calls::size(c.state), 32u);
    });
}

TEST_F(bias_test, an_unbounded_channel_becomes_biased_though_nobody_waits) {
    ums::run(one_processor, [] {
        open_channel c{ums::unbounded};
        for (int i = 0; i < 10; ++i) ASSERT_EQ(c.send(i), channel_status::ok);
        EXPECT_TRUE(c.is_biased());
        for (int i = 0; i < 10; ++i) ASSERT_EQ(c.receive(), i);
        EXPECT_TRUE(c.is_biased());
    });
}

TEST_F(bias_test, values_of_senders_that_wait_move_up_in_their_order) {
    ums::run(one_processor, [] {
        constexpr int senders = 4, each = 50;
        open_channel c{3};
        std::vector<fiber> all;
        for (int s = 0; s < senders; ++s)
            all.emplace_back([&c, s] {
                for (int i = 0; i < each; ++i) ASSERT_EQ(c.send(s * each + i), channel_status::ok);
            });
        int next[senders] = {};
        for (int i = 0; i < senders * each; ++i) {
            const int got = c.receive().value();
            ASSERT_EQ(got % each, next[got / each]++);
            ASSERT_LE(calls::size(c.state), 3u);
        }
        for (fiber& f : all) f.join();
        EXPECT_TRUE(c.is_biased());
    });
}

TEST_F(bias_test, a_plain_thread_takes_it_away) {
    ums::run(one_processor, [] {
        open_channel c;
        for (int round = 0; round < 5; ++round) {
            use(c);
            plain_thread other{[&] {
                for (int i = 0; i < 50; ++i) EXPECT_EQ(c.send(i), channel_status::ok);
            }};
            for (int i = 0; i < 50; ++i) EXPECT_EQ(c.receive(), i);
            other.join();
        }
    });
}

TEST_F(bias_test, it_outlives_its_runtime) {
    open_channel c{8};
    for (int round = 0; round < 5; ++round) {
        ums::run(one_processor, [&] { use(c); });
        EXPECT_EQ(c.send(7), channel_status::ok);
        EXPECT_EQ(c.receive(), 7);
    }
}

TEST_F(bias_test, it_outlives_its_processor) {
    ums::run(one_processor, [] {
        for (int round = 0; round < scaled(20, 5); ++round) {
            open_channel c{8};
            {
                ums::cluster other{{.processors = 1}};
                fiber{{.cluster = &other}, [&] { use(c); }}.join();
            }
            EXPECT_EQ(c.send(7), channel_status::ok);
            EXPECT_EQ(c.receive(), 7);
        }
    });
}

TEST_F(bias_test, it_loses_no_item_however_often_it_changes_sides) {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{3}, ums::unbounded})
        ums::run({.processors = 2}, [capacity] {
            const int each = by_variant(scaled(20'000, 2'000), scaled(5'000, 2'000));
            constexpr int pairs = 3;
            channel<int> c{capacity};
            std::atomic<long> sum = 0;
            const auto send = [&] {
                for (int i = 1; i <= each; ++i) {
                    ASSERT_EQ(c.send(i), channel_status::ok);
                    if (i % 1'000 == 0) this_fiber::yield();
                }
            };
            const auto receive = [&] {
                for (int i = 1; i <= each; ++i) {
                    const auto got = c.receive();
                    ASSERT_TRUE(got.has_value());
                    sum += *got;
                }
            };
            std::vector<fiber> all;
            for (int i = 0; i < pairs; ++i) {
                all.emplace_back(send);
                all.emplace_back(receive);
            }
            plain_thread sender{[&] {
                for (int i = 1; i <= each / 20; ++i) ASSERT_EQ(c.send(i), channel_status::ok);
            }};
            for (int i = 1; i <= each / 20; ++i) {
                int got = 0;
                const auto n =
                    ums::select(ums::on_receive(c, [&](std::optional<int> v) { got = *v; }));
                static_cast<void>(n);
                sum += got;
            }
            for (fiber& f : all) f.join();
            sender.join();
            const long one = static_cast<long>(each) * (each + 1) / 2;
            const long few = static_cast<long>(each / 20) * (each / 20 + 1) / 2;
            EXPECT_EQ(sum, pairs * one + few);
        });
}

TEST_F(bias_test, may_be_destroyed_right_after_the_wake_up) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(2'000, 200); ++i) {
            auto c = std::make_unique<open_channel>();
            use(*c, 5);
            fiber sender{[&] { EXPECT_EQ(c->send(1), channel_status::ok); }};
            EXPECT_EQ(c->receive(), 1);
            // The sender has been served, but may still be on its way out.
            sender.join();
            c.reset();
        }
    });
}

struct turns {
    void play(int me, int players, int times) {
        std::unique_lock held{lock};
        for (int i = 0; i < times; ++i) {
            turned.wait(held, [&] { return turn % players == me; });
            ++turn;
            turned.notify_all();
        }
    }
    ums::mutex lock;
    ums::condition_variable turned;
    int turn = 0;
};

TEST_F(bias_test, fibers_that_take_turns_under_a_condition_variable_lose_none) {
    for (const unsigned processors : {1u, 2u})
        ums::run({.processors = processors}, [] {
            constexpr int times = scaled(3'000, 300);
            turns t;
            std::vector<fiber> all;
            for (int i = 0; i < 3; ++i) all.emplace_back([&t, i] { t.play(i, 3, times); });
            for (fiber& f : all) f.join();
            EXPECT_EQ(t.turn, 3 * times);
        });
}

TEST_F(bias_test, fibers_and_a_plain_thread_take_turns_and_lose_none) {
    ums::run({.processors = 2}, [] {
        constexpr int times = scaled(500, 100);
        turns t;
        // This fiber uses it alone first, so that it is biased.
        {
            fiber other{[&] { t.play(1, 2, 100); }};
            t.play(0, 2, 100);
            other.join();
        }
        t.turn = 0;
        plain_thread thread{[&] { t.play(2, 3, times); }};
        fiber other{[&] { t.play(1, 3, times); }};
        t.play(0, 3, times);
        other.join();
        thread.join();
        EXPECT_EQ(t.turn, 3 * times);
    });
}

TEST_F(bias_test, one_notify_ends_one_wait_also_with_waiters_that_may_give_up) {
    ums::run({.processors = 2}, [] {
        constexpr int waiters = 8, times = scaled(500, 50);
        ums::mutex lock;
        ums::condition_variable come;
        int tickets = 0, used = 0;
        std::vector<fiber> all;
        for (int w = 0; w < waiters; ++w)
            all.emplace_back([&, w] {
                std::unique_lock held{lock};
                for (int i = 0; i < times; ++i) {
                    while (tickets == 0) {
                        if (w % 4 == 3)
                            static_cast<void>(come.wait_for(held, std::chrono::microseconds{50}));
                        else
                            come.wait(held);
                    }
                    --tickets;
                    ++used;
                }
            });
        for (int i = 0; i < waiters * times; ++i) {
            {
                const std::lock_guard held{lock};
                ++tickets;
            }
            come.notify_one();
            if (i % 3 == 0) this_fiber::yield();
        }
        for (fiber& f : all) f.join();
        EXPECT_EQ(used, waiters * times);
    });
}

}  // namespace
