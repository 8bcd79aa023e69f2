// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync policies
#include "ums/channel.hpp"

#include <any>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/fragile.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/variant.hpp"
#include "ums/jfiber.hpp"
#include "ums/queue.hpp"
#include "ums/run.hpp"
#include "ums/select.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::channel;
using ums::channel_status;
using ums::fiber;
namespace this_fiber = ums::this_fiber;

static_assert(!std::is_copy_constructible_v<channel<int>> &&
              !std::is_move_constructible_v<channel<int>>);
static_assert(std::input_iterator<channel<int>::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, channel<std::unique_ptr<int>>::iterator>);

class channel_test : public conserving_test {};

constexpr std::array<std::size_t, 4> capacities{0, 1, 7, ums::unbounded};

TEST_F(channel_test, values_come_out_in_the_order_they_went_in) {
    on_a_fiber_and_on_a_thread([] {
        for (const std::size_t capacity : capacities) {
            channel<int> c{capacity};
            EXPECT_EQ(c.capacity(), capacity);
            fiber sender{[&] {
                for (int i = 0; i < 1000; ++i) EXPECT_EQ(c.send(i), channel_status::ok);
                c.close();
            }};
            for (int i = 0; i < 1000; ++i) EXPECT_EQ(c.receive(), i);
            EXPECT_EQ(c.receive(), std::nullopt);
            sender.join();
        }
    });
}

TEST_F(channel_test, an_unbuffered_send_ends_when_it_was_received) {
    ums::run({.processors = 1}, [] {
        channel<int> c;
        bool sent = false;
        fiber sender{[&] {
            EXPECT_EQ(c.send(1), channel_status::ok);
            sent = true;
        }};
        for (int i = 0; i < 3; ++i) this_fiber::yield();
        EXPECT_FALSE(sent);
        EXPECT_EQ(c.size(), 0u);
        EXPECT_EQ(c.receive(), 1);
        sender.join();
        EXPECT_TRUE(sent);
    });
}

TEST_F(channel_test, a_buffered_one_holds_as_many_as_it_was_made_for) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c{3};
        for (int i = 0; i < 3; ++i) EXPECT_EQ(c.try_send(i), channel_status::ok);
        EXPECT_EQ(c.try_send(3), channel_status::full);
        EXPECT_EQ(c.size(), 3u);
        EXPECT_EQ(c.send_for(3, 1ms), channel_status::deadline_passed);
        for (int round = 0; round < 10; ++round) {
            EXPECT_EQ(c.receive(), round);
            EXPECT_EQ(c.send(round + 3), channel_status::ok);
        }
        EXPECT_EQ(c.size(), 3u);
    });
}

TEST_F(channel_test, an_unbounded_one_takes_whatever_comes_and_keeps_no_more_than_it_needs) {
    on_a_fiber_and_on_a_thread([] {
        channel<std::string> c{ums::unbounded};
        int in = 0, out = 0;
        std::minstd_rand random{1};
        for (int round = 0; round < 200; ++round) {
            for (auto n = random() % 400; n != 0; --n)
                ASSERT_EQ(c.send(std::to_string(in++) + " is a string that needs memory"),
                          channel_status::ok);
            for (auto n = random() % 400; n != 0 && !c.empty(); --n)
                ASSERT_EQ(std::stoi(c.receive().value()), out++);
            ASSERT_EQ(c.size(), static_cast<std::size_t>(in - out));
        }
        EXPECT_GT(in, out);  // The rest is destroyed with the channel.
    });
}

TEST_F(channel_test, the_try_forms_do_not_wait) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c;
        EXPECT_EQ(c.try_send(1), channel_status::full);
        EXPECT_EQ(c.try_receive().status(), channel_status::empty);
        fiber receiver{[&] { EXPECT_EQ(c.receive(), 7); }};
        while (c.try_send(7) != channel_status::ok) this_fiber::yield();
        receiver.join();
        fiber sender{[&] { EXPECT_EQ(c.send(8), channel_status::ok); }};
        for (;;) {
            auto got = c.try_receive();
            if (got) {
                EXPECT_EQ(*got, 8);
                EXPECT_EQ(got.status(), channel_status::ok);
                break;
            }
            this_fiber::yield();
        }
        sender.join();
        c.close();
        EXPECT_EQ(c.try_receive().status(), channel_status::closed);
        EXPECT_EQ(c.try_send(1), channel_status::closed);
    });
}

TEST_F(channel_test, a_close_lets_receivers_drain_and_senders_keep_their_value) {
    on_a_fiber_and_on_a_thread([] {
        channel<std::unique_ptr<int>> c{2};
        EXPECT_EQ(c.send(std::make_unique<int>(1)), channel_status::ok);
        EXPECT_EQ(c.send(std::make_unique<int>(2)), channel_status::ok);
        auto kept = std::make_unique<int>(3);
        fiber sender{[&] { EXPECT_EQ(c.send(std::move(kept)), channel_status::closed); }};
        this_fiber::yield();
        EXPECT_FALSE(c.is_closed());
        c.close();
        c.close();
        EXPECT_TRUE(c.is_closed());
        sender.join();
        ASSERT_NE(kept, nullptr);
        EXPECT_EQ(*kept, 3);
        EXPECT_EQ(c.send(std::move(kept)), channel_status::closed);
        EXPECT_NE(kept, nullptr);
        EXPECT_EQ(**c.receive(), 1);
        EXPECT_EQ(**c.receive(), 2);
        EXPECT_FALSE(c.receive().has_value());
        EXPECT_EQ(c.receive_for(1h).status(), channel_status::closed);
    });
}

TEST_F(channel_test, a_close_wakes_every_waiter) {
    ums::run({.processors = 2}, [] {
        const int rounds = by_variant(scaled(300, 30), scaled(100, 30));
        for (int round = 0; round < rounds; ++round) {
            channel<int> in, out;
            std::vector<fiber> all;
            std::vector<plain_thread> plain;
            auto receiver = [&] { EXPECT_EQ(in.receive(), std::nullopt); };
            auto sender = [&] { EXPECT_EQ(out.send(1), channel_status::closed); };
            for (int i = 0; i < 8; ++i) {
                all.emplace_back(receiver);
                all.emplace_back(sender);
            }
            plain.emplace_back(receiver);
            plain.emplace_back(sender);
            for (int i = 0; i < round % 8; ++i) this_fiber::yield();
            in.close();
            out.close();
            for (fiber& f : all) f.join();
            for (plain_thread& t : plain) t.join();
        }
    });
}

TEST_F(channel_test, a_range_for_ends_with_the_channel) {
    on_a_fiber_and_on_a_thread([] {
        channel<std::unique_ptr<int>> c{4};
        fiber sender{[&] {
            for (int i = 0; i < 100; ++i)
                EXPECT_EQ(c.send(std::make_unique<int>(i)), channel_status::ok);
            c.close();
        }};
        int next = 0;
        for (std::unique_ptr<int>& value : c) EXPECT_EQ(*value, next++);
        EXPECT_EQ(next, 100);
        sender.join();
    });
}

TEST_F(channel_test, a_deadline_ends_the_wait_and_none_is_early) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c;
        const auto start = steady_clock::now();
        EXPECT_EQ(c.receive_for(2ms).status(), channel_status::deadline_passed);
        EXPECT_GE(steady_clock::now(), start + 2ms);
        EXPECT_EQ(c.receive_until(start).status(), channel_status::deadline_passed);
        EXPECT_EQ(c.receive_until(std::chrono::system_clock::now() + 1ms).status(),
                  channel_status::deadline_passed);
        const int value = 1;
        EXPECT_EQ(c.send_for(value, -1s), channel_status::deadline_passed);
        EXPECT_EQ(c.send_until(1, std::chrono::system_clock::now() + 1ms),
                  channel_status::deadline_passed);
        fiber sender{[&] { EXPECT_EQ(c.send_for(5, 1h), channel_status::ok); }};
        EXPECT_EQ(c.receive_for(1h), 5);
        sender.join();
    });
}

TEST_F(channel_test, a_stop_ends_the_wait_and_a_value_is_preferred) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c, full{1};
        EXPECT_EQ(full.send(1), channel_status::ok);
        std::stop_source stop;
        fiber receiver{
            [&] { EXPECT_EQ(c.receive(stop.get_token()).status(), channel_status::stopped); }};
        fiber sender{[&] { EXPECT_EQ(full.send(2, stop.get_token()), channel_status::stopped); }};
        plain_thread plain{[&] {
            EXPECT_EQ(c.receive_for(1h, stop.get_token()).status(), channel_status::stopped);
        }};
        this_fiber::yield();
        stop.request_stop();
        receiver.join();
        sender.join();
        plain.join();
        EXPECT_EQ(full.receive(stop.get_token()), 1);
        EXPECT_EQ(full.send(3, stop.get_token()), channel_status::ok);
    });
}

TEST_F(channel_test, waiters_are_served_in_the_order_of_their_arrival) {
    ums::run(one_processor, [] {
        for (const std::size_t capacity : {std::size_t{0}, std::size_t{3}}) {
            channel<int> c{capacity};
            std::vector<int> got(50);
            std::vector<fiber> receivers, senders;
            for (int i = 0; i < 50; ++i) {
                receivers.emplace_back([&, i] { got[static_cast<std::size_t>(i)] = *c.receive(); });
                this_fiber::yield();
            }
            for (int i = 0; i < 50; ++i) EXPECT_EQ(c.send(i), channel_status::ok);
            for (fiber& f : receivers) f.join();
            for (int i = 0; i < 50; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
            for (int i = 0; i < 50; ++i) {
                senders.emplace_back([&, i] { EXPECT_EQ(c.send(i), channel_status::ok); });
                this_fiber::yield();
            }
            for (int i = 0; i < 50; ++i) EXPECT_EQ(c.receive(), i);
            for (fiber& f : senders) f.join();
        }
    });
}

TEST_F(channel_test, batches_keep_the_order_and_lose_nothing) {
    on_a_fiber_and_on_a_thread([] {
        for (const std::size_t capacity : capacities) {
            channel<std::unique_ptr<int>> c{capacity};
            const int total = by_variant(scaled(20'000, 2'000), scaled(5'000, 2'000));
            std::vector<fiber> senders;
            for (int who = 0; who < 2; ++who)
                senders.emplace_back([&, who] {
                    std::mt19937_64 random{test_seed() + static_cast<unsigned>(who)};
                    for (int sent = 0; sent < total;) {
                        std::vector<std::unique_ptr<int>> values;
                        for (auto n = random() % 100; n != 0 && sent < total; --n)
                            values.push_back(std::make_unique<int>(2 * sent++ + who));
                        const ums::batch b = c.send_all(values);
                        EXPECT_TRUE(b);
                        EXPECT_EQ(b.count, values.size());
                        for (const auto& gone : values) EXPECT_EQ(gone, nullptr);
                    }
                });
            int next[2] = {0, 1}, seen = 0;
            while (seen < 2 * total) {
                std::vector<std::unique_ptr<int>> values;
                const std::size_t most = 1 + static_cast<std::size_t>(seen) % 150;
                const ums::batch b = c.receive_some(values, most);
                ASSERT_TRUE(b);
                ASSERT_GE(b.count, 1u);
                ASSERT_LE(b.count, most);
                ASSERT_EQ(b.count, values.size());
                for (const auto& v : values) {
                    int& expected = next[*v % 2];
                    ASSERT_EQ(*v, expected);
                    expected += 2;
                    ++seen;
                }
            }
            for (fiber& f : senders) f.join();
        }
    });
}

TEST_F(channel_test, a_batch_says_how_far_it_came) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c{3};
        std::vector<int> out, in{1, 2, 3, 4, 5};
        EXPECT_EQ(c.receive_some_until(out, 5, ums::deadline{}).status,
                  channel_status::deadline_passed);
        ums::batch b = c.send_all_until(in, ums::deadline{});
        EXPECT_EQ(b.count, 3u);
        EXPECT_EQ(b.status, channel_status::deadline_passed);
        std::stop_source stop;
        stop.request_stop();
        EXPECT_EQ(c.send_all(in, stop.get_token()).status, channel_status::stopped);
        b = c.receive_some(out, 2);
        EXPECT_EQ(b.count, 2u);
        EXPECT_EQ(out, (std::vector<int>{1, 2}));
        fiber closer{[&] {
            while (c.size() < 3) this_fiber::yield();  // Two of the five have found room.
            c.close();
        }};
        b = c.send_all(in);
        EXPECT_EQ(b.count, 2u);
        EXPECT_EQ(b.status, channel_status::closed);
        closer.join();
        b = c.receive_some(out, 100);
        EXPECT_TRUE(b);
        EXPECT_EQ(out, (std::vector<int>{1, 2, 3, 1, 2}));
        b = c.receive_some(out, 100);
        EXPECT_EQ(b.count, 0u);
        EXPECT_EQ(b.status, channel_status::closed);
        EXPECT_TRUE(c.receive_some(out, 0));
        EXPECT_TRUE(c.send_all({}));
    });
}

TEST_F(channel_test, a_move_that_throws_loses_and_doubles_nothing) {
    ums::run({.processors = 2}, [] {
        for (const std::size_t capacity : capacities) {
            channel<fragile> c{capacity};
            constexpr int senders = 4, each = scaled(500, 100);
            std::vector<std::atomic<int>> seen(senders * each);
            std::vector<fiber> all;
            std::atomic<int> got = 0, left = senders;
            for (int s = 0; s < senders; ++s)
                all.emplace_back([&, s] {
                    for (int i = 0; i < each; ++i) {
                        fragile value{s * each + i};
                        for (;;) {
                            try {
                                ASSERT_EQ(c.send(std::move(value)), channel_status::ok);
                                break;
                            } catch (const std::runtime_error&) {
                                ASSERT_NE(value.number, -1);
                            }
                        }
                    }
                    if (--left == 0) c.close();
                });
            for (int r = 0; r < 4; ++r)
                all.emplace_back([&] {
                    for (;;) {
                        alignas(std::optional<fragile>)
                            std::byte place[sizeof(std::optional<fragile>)];
                        try {
                            // This does not move the value once more.
                            auto* value = ::new (place) std::optional<fragile>{c.receive()};
                            if (!*value) break;
                            ++seen[static_cast<std::size_t>((*value)->number)];
                            ++got;
                            std::destroy_at(value);
                        } catch (const std::runtime_error&) {
                        }
                    }
                });
            for (fiber& f : all) f.join();
            EXPECT_EQ(got, senders * each);
            for (const auto& n : seen) ASSERT_EQ(n, 1);
        }
    });
    EXPECT_EQ(fragile::alive, 0);
}

// A batch that fails in the middle has received the values before.
TEST_F(channel_test, a_batch_keeps_what_it_got_before_a_move_that_throws) {
    static int moves_left;
    struct late {
        explicit late(int n) : number{n} {}
        late(late&& other) : number{other.number} {
            if (moves_left > 0 && --moves_left == 0) throw std::runtime_error{"a move"};
        }
        int number;
    };
    for (const std::size_t capacity : {std::size_t{8}, ums::unbounded}) {
        channel<late> c{capacity};
        for (int i = 0; i < 5; ++i) EXPECT_EQ(c.send(late{i}), channel_status::ok);
        std::vector<late> values;
        values.reserve(10);
        moves_left = 3;
        EXPECT_THROW(c.receive_some(values, 10), std::runtime_error);
        EXPECT_EQ(c.size(), 3U);
        EXPECT_EQ(c.receive_some(values, 10).count, 3U);
        ASSERT_EQ(values.size(), 5U);
        for (int i = 0; i < 5; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)].number, i);
    }
}

TEST_F(channel_test, values_left_in_it_are_destroyed_with_it) {
    for (const std::size_t capacity : {std::size_t{5}, ums::unbounded}) {
        auto shared = std::make_shared<int>(1);
        {
            channel<std::shared_ptr<int>> c{capacity};
            for (int i = 0; i < 5; ++i) EXPECT_EQ(c.send(shared), channel_status::ok);
            EXPECT_EQ(shared.use_count(), 6);
            EXPECT_EQ(*c.receive(), shared);
        }
        EXPECT_EQ(shared.use_count(), 1);
    }
}

TEST_F(channel_test, elements_are_aligned) {
    struct alignas(256) wide {
        std::uint64_t number;
    };
    for (const std::size_t capacity : {std::size_t{3}, ums::unbounded}) {
        channel<wide> c{capacity};
        for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(c.send({i}), channel_status::ok);
        for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(c.receive()->number, i);
    }
    EXPECT_THROW(channel<int>{SIZE_MAX - 1}, std::length_error);
}

template <std::size_t bytes>
struct filled {
    explicit filled(std::uint32_t seed) {
        for (std::size_t i = 0; i < bytes; ++i)
            at[i] = static_cast<unsigned char>(seed * 31 + i * 7);
    }
    bool operator==(const filled&) const = default;
    std::array<unsigned char, bytes> at;
};

// Often enough that the channel becomes biased, through all blocks, and past a close().
template <std::size_t bytes>
void send_and_receive_filled(std::size_t capacity) {
    const auto values = static_cast<std::uint32_t>(by_variant(scaled(3'000, 300), 300));
    const std::uint32_t first_part = values / 3;
    using value = filled<bytes>;
    channel<value> c{capacity};
    fiber sender{[&] {
        for (std::uint32_t i = 0; i < values; ++i) ASSERT_EQ(c.send(value{i}), channel_status::ok);
        c.close();
        ASSERT_EQ(c.send(value{0}), channel_status::closed);
    }};
    for (std::uint32_t i = 0; i < first_part; ++i) ASSERT_EQ(c.receive(), value{i});
    std::uint32_t next = first_part;
    for (const value& v : c) ASSERT_EQ(v, value{next++});
    EXPECT_EQ(next, values);
    EXPECT_EQ(c.receive(), std::nullopt);
    EXPECT_EQ(c.try_receive().status(), channel_status::closed);
    sender.join();
}

TEST_F(channel_test, values_of_any_size_arrive_whole) {
    for (const unsigned processors : {1u, 2u})
        ums::run({.processors = processors}, [] {
            for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{2},
                                               std::size_t{7}, std::size_t{64}, ums::unbounded}) {
                send_and_receive_filled<1>(capacity);
                send_and_receive_filled<3>(capacity);
                send_and_receive_filled<4>(capacity);
                send_and_receive_filled<8>(capacity);
                send_and_receive_filled<16>(capacity);
                send_and_receive_filled<17>(capacity);
                send_and_receive_filled<256>(capacity);
                send_and_receive_filled<257>(capacity);
            }
        });
}

TEST_F(channel_test, a_select_receives_values_of_any_size_whole) {
    ums::run({.processors = 1}, [] {
        channel<filled<4>> small{2};
        channel<filled<300>> large{2};
        fiber sender{[&] {
            for (std::uint32_t i = 0; i < 200; ++i) {
                ASSERT_EQ(small.send(filled<4>{i}), channel_status::ok);
                ASSERT_EQ(large.send(filled<300>{i}), channel_status::ok);
            }
            small.close();
        }};
        std::uint32_t next_small = 0, next_large = 0;
        for (bool is_open = true; is_open || next_large < 200;)
            ums::select(ums::on_receive(small,
                                        [&](std::optional<filled<4>> got) {
                                            if (got) {
                                                ASSERT_EQ(*got, filled<4>{next_small++});
                                            } else {
                                                is_open = false;
                                                ASSERT_EQ(next_small, 200u);
                                            }
                                        }),
                        ums::on_receive(large, [&](std::optional<filled<300>> got) {
                            ASSERT_EQ(got, filled<300>{next_large++});
                        }));
        auto closed = ums::on_receive(small);
        EXPECT_EQ(ums::select(closed).status, channel_status::closed);
        EXPECT_FALSE(closed.value());
        sender.join();
    });
}

// Producers and consumers of both worlds. Each value carries its producer and its place in its
// order.
void move_items(std::size_t capacity, int fiber_senders, int thread_senders, int fiber_receivers,
                int thread_receivers, std::uint32_t items) {
    ums::run({.processors = 2}, [&] {
        channel<std::uint64_t> c{capacity};
        const int senders = fiber_senders + thread_senders;
        const std::uint32_t each = items / static_cast<std::uint32_t>(senders);
        std::vector<std::vector<std::uint64_t>> logs(
            static_cast<std::size_t>(fiber_receivers + thread_receivers));
        std::atomic<int> left = senders;
        auto send = [&](std::uint64_t who) {
            for (std::uint32_t i = 0; i < each; ++i)
                ASSERT_EQ(c.send(who << 32 | i), channel_status::ok);
            if (--left == 0) c.close();
        };
        auto receive = [&](std::vector<std::uint64_t>& log) {
            for (const std::uint64_t value : c) log.push_back(value);
        };
        std::vector<fiber> fibers;
        std::vector<plain_thread> threads;
        for (int i = 0; i < senders; ++i)
            i < fiber_senders
                ? static_cast<void>(fibers.emplace_back([&, i] { send(static_cast<unsigned>(i)); }))
                : static_cast<void>(
                      threads.emplace_back([&, i] { send(static_cast<unsigned>(i)); }));
        for (std::size_t i = 0; i < logs.size(); ++i)
            i < static_cast<std::size_t>(fiber_receivers)
                ? static_cast<void>(fibers.emplace_back([&, i] { receive(logs[i]); }))
                : static_cast<void>(threads.emplace_back([&, i] { receive(logs[i]); }));
        for (fiber& f : fibers) f.join();
        for (plain_thread& t : threads) t.join();

        std::vector<std::vector<bool>> seen(static_cast<std::size_t>(senders),
                                            std::vector<bool>(each));
        std::size_t total = 0;
        for (const auto& log : logs) {
            std::vector<std::int64_t> last(static_cast<std::size_t>(senders), -1);
            for (const std::uint64_t value : log) {
                const auto who = value >> 32;
                const auto i = static_cast<std::uint32_t>(value);
                ASSERT_FALSE(seen[who][i]) << "doubled";
                seen[who][i] = true;
                ASSERT_GT(static_cast<std::int64_t>(i), last[who]) << "out of order";
                last[who] = i;
                ++total;
            }
        }
        EXPECT_EQ(total, std::size_t{each} * static_cast<std::size_t>(senders));
    });
}

TEST_F(channel_test, fibers_and_threads_send_to_each_other_and_lose_nothing) {
    for (const std::size_t capacity : capacities) {
        // With little room a plain thread waits in the kernel for each item.
        const int most = by_variant(scaled(40'000, 4'000), scaled(10'000, 4'000));
        const int few = by_variant(scaled(4'000, 1'000), 1'000);
        const auto items = static_cast<std::uint32_t>(capacity > 1 ? most : few);
        move_items(capacity, 0, 1, 4, 0, items);
        move_items(capacity, 4, 0, 0, 1, items);
        move_items(capacity, 4, 0, 4, 0, items);
        move_items(capacity, 3, 2, 3, 2, items);
    }
}

// A caller that gives up has neither sent nor received; one that succeeded has.
TEST_F(channel_test, deadlines_stops_and_partners_race) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        for (const std::size_t capacity : capacities) {
            const int rounds = by_variant(scaled(1500, 150), scaled(400, 150));
            channel<std::unique_ptr<std::uint64_t>> c{capacity};
            std::atomic<std::uint64_t> sent = 0, received = 0, in_sum = 0, out_sum = 0;
            auto work = [&](int n) {
                const bool is_sender = n % 2 == 0;
                std::minstd_rand random{static_cast<unsigned>(seed) + static_cast<unsigned>(n)};
                for (int i = 0; i < rounds; ++i) {
                    const std::chrono::nanoseconds d{random() % 20'000};
                    std::stop_source stop;
                    std::jthread stopper;
                    const bool stops = i % 200 == 0;
                    if (stops) stopper = std::jthread{[&] { stop.request_stop(); }};
                    if (is_sender) {
                        const std::uint64_t number = random();
                        auto value = std::make_unique<std::uint64_t>(number);
                        const auto status = stops ? c.send(std::move(value), stop.get_token())
                                                  : c.send_for(std::move(value), d);
                        ASSERT_EQ(value == nullptr, status == channel_status::ok);
                        if (status != channel_status::ok) continue;
                        ++sent;
                        in_sum += number;
                    } else {
                        auto value = stops ? c.receive(stop.get_token()) : c.receive_for(d);
                        ASSERT_EQ(value.has_value(), value.status() == channel_status::ok);
                        if (!value) continue;
                        ++received;
                        out_sum += **value;
                    }
                }
            };
            on_threads_and_fibers(2, 12, work);
            while (auto rest = c.try_receive()) {
                ++received;
                out_sum += **rest;
            }
            EXPECT_EQ(sent, received);
            EXPECT_EQ(in_sum, out_sum);
        }
    });
}

// A value sent before the close was received; a value that was refused was not.
TEST_F(channel_test, closes_race_with_senders_and_receivers) {
    ums::run({.processors = 2}, [] {
        const int rounds = by_variant(scaled(400, 60), scaled(120, 60));
        for (int round = 0; round < rounds; ++round) {
            channel<int> c{capacities[static_cast<std::size_t>(round) % capacities.size()]};
            std::atomic<int> sent = 0, received = 0;
            std::vector<fiber> all;
            for (int i = 0; i < 4; ++i) {
                all.emplace_back([&] {
                    while (c.send(1) == channel_status::ok && ++sent % 8 != 0) {
                    }
                });
                all.emplace_back([&] {
                    while (c.receive()) ++received;
                });
            }
            plain_thread closer{[&] { c.close(); }};
            if (round % 2 == 0) this_fiber::yield();
            c.close();
            closer.join();
            for (fiber& f : all) f.join();
            EXPECT_EQ(sent, received);
        }
    });
}

// The fiber that was woken destroys the channel while the waker may still be returning.
TEST_F(channel_test, may_be_destroyed_right_after_the_wake_up) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(3000, 300); ++i) {
            auto* c = new channel<int>;
            fiber waiter{[c, i] {
                if (i % 3 == 0)
                    EXPECT_EQ(c->receive(), 1);
                else if (i % 3 == 1)
                    EXPECT_EQ(c->send(1), channel_status::ok);
                else
                    EXPECT_EQ(c->receive(), std::nullopt);
                delete c;
            }};
            if (i % 2 == 0) {
                // Otherwise the other operation waits, and comes back from a channel that is gone.
                auto is_there = [&] {
                    if (i % 3 == 0) return c->try_send(1) == channel_status::ok;
                    if (i % 3 == 1) return c->try_receive().has_value();
                    this_fiber::yield();
                    c->close();
                    return true;
                };
                while (!is_there()) this_fiber::yield();
            } else if (i % 3 == 0) {
                EXPECT_EQ(c->send(1), channel_status::ok);
            } else if (i % 3 == 1) {
                EXPECT_EQ(c->receive(), 1);
            } else {
                c->close();
            }
            waiter.join();
        }
    });
}

TEST_F(channel_test, a_queue_is_a_channel_with_other_names) {
    on_a_fiber_and_on_a_thread([] {
        ums::concurrent_queue<std::string> q, bounded{2};
        EXPECT_TRUE(q.push("a"));
        EXPECT_TRUE(q.emplace(3u, 'b'));
        EXPECT_EQ(q.size(), 2u);
        EXPECT_EQ(q.pop(), "a");
        EXPECT_EQ(q.try_pop(), "bbb");
        EXPECT_EQ(q.try_pop(), std::nullopt);
        EXPECT_TRUE(q.empty());
        fiber popper{[&] { EXPECT_EQ(q.pop(), "c"); }};
        EXPECT_TRUE(q.push("c"));
        popper.join();
        EXPECT_TRUE(bounded.try_push("1"));
        EXPECT_TRUE(bounded.try_push("2"));
        EXPECT_FALSE(bounded.try_push("3"));
        EXPECT_EQ(bounded.capacity(), 2u);
        q.close();
        EXPECT_TRUE(q.is_closed());
        EXPECT_FALSE(q.push("d"));
        EXPECT_EQ(q.pop(), std::nullopt);
        EXPECT_THROW(ums::concurrent_queue<int>{0}, std::invalid_argument);
    });
}

// A std::any can be made from an empty std::optional<std::any>, too.
TEST_F(channel_test, a_queue_of_what_takes_anything_says_that_it_is_empty) {
    ums::concurrent_queue<std::any> anything;
    EXPECT_FALSE(anything.try_pop().has_value());
    EXPECT_TRUE(anything.push(std::any{7}));
    const std::optional<std::any> got = anything.try_pop();
    ASSERT_TRUE(got.has_value());
    EXPECT_NE(std::any_cast<int>(&*got), nullptr);
    ums::concurrent_queue<bool> flags;
    EXPECT_FALSE(flags.try_pop().has_value());
    EXPECT_TRUE(flags.push(false));
    EXPECT_EQ(flags.try_pop(), std::optional<bool>{false});
}

TEST_F(channel_test, a_value_need_not_be_assignable_nor_show_its_address) {
    struct strict {
        explicit strict(int n) : number{n} {}
        strict(const strict&) = default;
        strict& operator=(const strict&) = delete;
        void operator&() const = delete;
        const int number;
    };
    on_a_fiber_and_on_a_thread([] {
        channel<strict> c{10};
        const strict two{2}, four{4}, six{6};
        EXPECT_EQ(c.send(strict{1}), channel_status::ok);
        EXPECT_EQ(c.send(two), channel_status::ok);
        EXPECT_EQ(c.try_send(strict{3}), channel_status::ok);
        EXPECT_EQ(c.try_send(four), channel_status::ok);
        EXPECT_EQ(c.send_for(strict{5}, 1h), channel_status::ok);
        EXPECT_EQ(c.send_for(six, 1h), channel_status::ok);
        const std::stop_token none;
        EXPECT_EQ(c.send(strict{7}, none), channel_status::ok);
        EXPECT_EQ(c.send(strict{8}, none), channel_status::ok);
        EXPECT_EQ(c.receive()->number, 1);
        EXPECT_EQ(c.try_receive()->number, 2);
        c.close();
        int next = 3;
        for (auto one = c.begin(); one != c.end(); ++one) EXPECT_EQ(one->number, next++);
        EXPECT_EQ(next, 9);
    });
}

// Such a type would be made from a list of one element if it were initialised with braces.
TEST_F(channel_test, a_copy_is_a_copy_also_of_a_list_of_anything) {
    using list = std::vector<std::any>;
    channel<list> c{3};
    const list three(3);
    EXPECT_EQ(c.send(three), channel_status::ok);
    EXPECT_EQ(c.try_send(three), channel_status::ok);
    EXPECT_EQ(ums::select(ums::on_send(c, three)), 0u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(c.receive()->size(), 3u);
}

const child_program destroys_in_use{
    "destroys_in_use", [](const child_arguments&) {
        ums::run([] {
            auto* c = new channel<int>;
            fiber waiter{[c] { (void)c->receive(); }};
            for (int i = 0; i < 100; ++i) this_fiber::yield();
            while (c->try_receive().status() != channel_status::empty) {
            }
            delete c;
            waiter.join();
        });
        return 0;
    }};

TEST(channel_misuse_test, its_destruction_while_somebody_waits_ends_the_program) {
    // One processor, which is never handed off: the waiter waits when the main fiber goes on.
    const child_end end =
        run_child("destroys_in_use", {}, {{"UMS_PROCESSORS", "1"}, {"UMS_BLOCK", "off"}});
    EXPECT_NE(end.code, 0);
    EXPECT_NE(end.err.find("while somebody waits in it"), end.err.npos) << end;
}

}  // namespace
