// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/select.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/fragile.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/jfiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::channel;
using ums::channel_status;
using ums::fiber;
using ums::on_deadline;
using ums::on_receive;
using ums::on_send;
using ums::on_stop;
using ums::on_timeout;
using ums::otherwise;
using ums::select;
namespace this_fiber = ums::this_fiber;

class select_test : public conserving_test {};

TEST_F(select_test, the_case_that_can_happen_does) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> a{1}, b{1};
        EXPECT_EQ(b.send(7), channel_status::ok);
        int got = 0;
        auto never = [](auto&&...) { FAIL(); };
        const auto result = select(on_receive(a, never),
                                   on_receive(b, [&](std::optional<int> v) { got = v.value(); }),
                                   on_timeout(1h, never));
        EXPECT_EQ(result.index, 1u);
        EXPECT_EQ(result.status, channel_status::ok);
        EXPECT_EQ(got, 7);
        bool sent = false;
        EXPECT_EQ(select(on_receive(b, never), on_send(a, 5, [&] { sent = true; })), 1u);
        EXPECT_TRUE(sent);
        EXPECT_EQ(a.receive(), 5);
    });
}

TEST_F(select_test, it_waits_for_the_first) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> a, b;
        for (int i = 0; i < 20; ++i) {
            fiber other{[&, i] {
                for (int n = 0; n < i % 4; ++n) this_fiber::yield();
                if (i % 2 == 0)
                    EXPECT_EQ(b.send(i), channel_status::ok);
                else
                    EXPECT_EQ(a.receive(), i);
            }};
            std::optional<int> got;
            const auto index =
                select(on_receive(b, [&](std::optional<int> v) { got = v; }), on_send(a, i));
            EXPECT_EQ(index, i % 2 == 0 ? 0u : 1u);
            EXPECT_EQ(got.has_value(), i % 2 == 0);
            other.join();
        }
        EXPECT_EQ(a.try_receive().status(), channel_status::empty);
        EXPECT_EQ(b.try_send(0), channel_status::full);
    });
}

TEST_F(select_test, with_otherwise_it_does_not_wait) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c, room{1};
        bool other = false;
        EXPECT_EQ(
            select(on_receive(c), on_send(c, 1), otherwise([&] { other = true; }), on_timeout(1h)),
            2u);
        EXPECT_TRUE(other);
        EXPECT_EQ(select(otherwise(), on_send(room, 1)), 1u);
        EXPECT_EQ(select(otherwise(), on_timeout(-1s)), 1u);
        std::stop_source stop;
        EXPECT_EQ(select(otherwise(), on_stop(stop.get_token())), 0u);
        stop.request_stop();
        EXPECT_EQ(select(otherwise(), on_stop(stop.get_token())), 1u);
    });
}

// The mover fills a channel before it empties the next one, against the direction of the look.
TEST_F(select_test, otherwise_does_not_happen_while_at_every_instant_one_channel_is_full) {
    ums::run({.processors = 2}, [] {
        constexpr std::size_t n = 16;
        std::vector<std::unique_ptr<channel<int>>> ring;
        for (std::size_t i = 0; i < n; ++i) ring.push_back(std::make_unique<channel<int>>(1));
        EXPECT_EQ(ring[0]->send(1), channel_status::ok);
        std::atomic<bool> ends = false;
        std::atomic<long> moves = 0;
        fiber mover{[&] {
            for (std::size_t at = 0; !ends; at = (at + n - 1) % n, ++moves) {
                EXPECT_EQ(ring[(at + n - 1) % n]->send(1), channel_status::ok);
                EXPECT_TRUE(ring[at]->receive().has_value());
                // A lone processor without time slices (sanitizers) comes to no other fiber.
                if (moves % 64 == 0) this_fiber::yield();
            }
        }};
        using receive = decltype(on_receive(*ring[0]));
        std::vector<receive> cases;
        for (auto& one : ring) cases.push_back(on_receive(*one));
        auto none = otherwise();
        std::vector<ums::select_case*> all;
        for (receive& one : cases) all.push_back(&one);
        all.push_back(&none);
        int defaults = 0;
        constexpr int enough = scaled(20'000, 1000);
        for (int looks = 0; looks < enough || moves < enough; ++looks) {
            const auto index = select(std::span<ums::select_case* const>{all}).index;
            if (index == n)
                ++defaults;
            else
                EXPECT_EQ(ring[index]->send(1), channel_status::ok);
            if (looks % 64 == 0) this_fiber::yield();
        }
        EXPECT_EQ(defaults, 0);
        ends = true;
        mover.join();
    });
}

TEST_F(select_test, the_earliest_deadline_ends_it_and_is_not_early) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c;
        const auto start = steady_clock::now();
        bool passed = false;
        EXPECT_EQ(select(on_deadline(start + 1h), on_receive(c),
                         on_deadline(start + 2ms, [&] { passed = true; })),
                  2u);
        EXPECT_TRUE(passed);
        EXPECT_GE(steady_clock::now(), start + 2ms);
        EXPECT_EQ(c.try_send(1), channel_status::full);
        EXPECT_EQ(select(on_deadline(std::chrono::system_clock::now() + 1ms), on_send(c, 1)), 0u);
        EXPECT_EQ(select(on_timeout(1ms)), 0u);
    });
}

TEST_F(select_test, any_of_several_stop_tokens_ends_it) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c;
        std::stop_source first, second, third;
        std::atomic<bool> ended = false;
        fiber waiter{[&] {
            bool called = false;
            EXPECT_EQ(select(on_stop(first.get_token()), on_receive(c),
                             on_stop(second.get_token(), [&] { called = true; })),
                      2u);
            EXPECT_TRUE(called);
            ended = true;
        }};
        this_fiber::yield();
        third.request_stop();
        EXPECT_FALSE(ended);
        second.request_stop();
        waiter.join();
        EXPECT_EQ(select(on_receive(c), on_stop(second.get_token())), 1u);
        EXPECT_EQ(c.try_send(1), channel_status::full);
    });
}

TEST_F(select_test, a_closed_channel_tells_both_sides) {
    on_a_fiber_and_on_a_thread([] {
        channel<std::unique_ptr<int>> c;
        for (const bool before : {true, false}) {
            channel<std::unique_ptr<int>> closing, other;
            fiber closer;
            if (before)
                closing.close();
            else
                closer = fiber{[&] { closing.close(); }};
            bool ended = false;
            const auto r =
                select(on_receive(other),
                       on_receive(closing, [&](auto value) { ended = !value.has_value(); }));
            EXPECT_EQ(r.index, 1u);
            EXPECT_EQ(r.status, channel_status::closed);
            EXPECT_TRUE(ended);
            if (!before) closer.join();
        }
        c.close();
        auto kept = std::make_unique<int>(3);
        channel_status told = channel_status::ok;
        const auto r = select(on_send(c, std::ref(kept), [&](channel_status s) { told = s; }));
        EXPECT_EQ(r.status, channel_status::closed);
        EXPECT_EQ(told, channel_status::closed);
        ASSERT_NE(kept, nullptr);
        EXPECT_EQ(*kept, 3);
        bool called = false;
        EXPECT_EQ(select(on_send(c, std::make_unique<int>(4), [&] { called = true; })), 0u);
        EXPECT_FALSE(called);
    });
}

TEST_F(select_test, a_value_is_moved_from_only_if_it_was_sent) {
    on_a_fiber_and_on_a_thread([] {
        channel<std::string> full;
        channel<std::string> room{1};
        std::string a = "a", b = "b";
        EXPECT_EQ(select(on_send(full, std::ref(a)), on_send(room, std::ref(b))), 1u);
        EXPECT_EQ(a, "a");
        EXPECT_EQ(room.receive(), "b");
        auto named = on_send(full, std::string{"kept"});
        EXPECT_EQ(select(named, otherwise()), 1u);
        EXPECT_EQ(named.value(), "kept");
    });
}

TEST_F(select_test, one_channel_may_occur_several_times_and_does_not_meet_itself) {
    on_a_fiber_and_on_a_thread([] {
        channel<int> c;
        EXPECT_EQ(
            select(on_receive(c), on_send(c, 1), on_receive(c), on_send(c, 2), on_timeout(1ms)),
            4u);
        for (int i = 0; i < 10; ++i) {
            fiber partner{[&] { EXPECT_TRUE(c.receive().has_value()); }};
            const auto index = select(on_receive(c), on_send(c, 1), on_send(c, 2), on_receive(c));
            EXPECT_TRUE(index == 1 || index == 2);
            partner.join();
        }
        c.close();
    });
}

TEST_F(select_test, those_that_can_happen_are_chosen_alike) {
    ums::run({.processors = 1}, [] {
        constexpr int cases = 4, rounds = 4000;
        channel<int> ready[cases];
        for (channel<int>& c : ready) c.close();
        std::array<int, cases> chosen{};
        for (int i = 0; i < rounds; ++i)
            ++chosen[select(on_receive(ready[0]), on_receive(ready[1]), on_receive(ready[2]),
                            on_receive(ready[3]))];
        for (const int n : chosen) {
            EXPECT_GT(n, rounds / cases / 2);
            EXPECT_LT(n, rounds / cases * 2);
        }
    });
}

TEST_F(select_test, hundreds_of_cases_known_only_at_run_time) {
    on_a_fiber_and_on_a_thread([] {
        constexpr std::size_t n = 300;
        std::vector<std::unique_ptr<channel<std::size_t>>> channels;
        for (std::size_t i = 0; i < n; ++i)
            channels.push_back(std::make_unique<channel<std::size_t>>());
        using receive = decltype(on_receive(*channels[0]));
        std::vector<receive> cases;
        for (auto& c : channels) cases.push_back(on_receive(*c));
        fiber sender{[&] {
            for (std::size_t i = 0; i < n; ++i)
                EXPECT_EQ(channels[i * 7 % n]->send(i), channel_status::ok);
        }};
        for (std::size_t i = 0; i < n; ++i) {
            const auto r = select(std::span{cases});
            EXPECT_EQ(r.index, i * 7 % n);
            EXPECT_EQ(cases[r.index].value(), i);
        }
        sender.join();

        auto out = ums::otherwise();
        std::vector<ums::select_case*> mixed;
        for (receive& one : cases) mixed.push_back(&one);
        mixed.push_back(&out);
        EXPECT_EQ(select(std::span<ums::select_case* const>{mixed}), n);
    });
}

// All sides are selects, on channels without room: each item must meet exactly one partner.
TEST_F(select_test, selects_that_meet_neither_lose_nor_double_nor_stand_still) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int each = scaled(3000, 300), pairs = 4;
        channel<std::uint64_t> c[3];
        std::atomic<std::uint64_t> in = 0, out = 0, count_in = 0, count_out = 0;
        std::atomic<int> left = pairs;
        auto send = [&](unsigned n) {
            std::minstd_rand random{static_cast<unsigned>(seed) + n};
            for (int i = 0; i < each; ++i) {
                std::uint64_t a = random(), b = random();
                const unsigned x = random() % 3, y = random() % 3;
                switch (select(on_send(c[x], a), on_send(c[y], b), on_timeout(1h))) {
                    case 0:
                        in += a;
                        break;
                    case 1:
                        in += b;
                        break;
                    default:
                        ADD_FAILURE();
                }
                ++count_in;
            }
            if (--left == 0)
                for (auto& one : c) one.close();
        };
        auto receive = [&](unsigned n) {
            std::minstd_rand random{static_cast<unsigned>(seed) + n};
            auto take = [&](std::optional<std::uint64_t> v) {
                if (!v) return;
                out += *v;
                ++count_out;
            };
            for (;;) {
                std::stop_source stop;
                const auto r = select(on_receive(c[2], take), on_stop(stop.get_token()),
                                      on_receive(c[0], take), on_receive(c[1], take),
                                      on_receive(c[random() % 3], take));
                if (r.status == channel_status::closed) break;
            }
        };
        std::vector<fiber> fibers;
        std::vector<plain_thread> threads;
        for (unsigned i = 0; i < pairs - 1; ++i) {
            fibers.emplace_back(send, i);
            fibers.emplace_back(receive, 100 + i);
        }
        threads.emplace_back(send, 50);
        threads.emplace_back(receive, 150);
        for (fiber& f : fibers) f.join();
        for (plain_thread& t : threads) t.join();
        EXPECT_EQ(count_in, std::uint64_t{pairs} * each);
        EXPECT_EQ(count_out, count_in);
        EXPECT_EQ(in, out);
    });
}

// Each fiber both sends and receives in one select; deadlines, stops, plain operations and a close
// race with that.
TEST_F(select_test, everything_races_and_nothing_is_lost) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        for (const std::size_t capacity : {std::size_t{0}, std::size_t{2}, ums::unbounded}) {
            constexpr int rounds = scaled(2000, 200);
            channel<std::unique_ptr<std::uint64_t>> a{capacity}, b{capacity};
            std::atomic<std::uint64_t> in = 0, out = 0;
            auto work = [&](int n) {
                std::minstd_rand random{static_cast<unsigned>(seed) + static_cast<unsigned>(n)};
                std::stop_source stop;
                auto take = [&](std::optional<std::unique_ptr<std::uint64_t>> v) {
                    if (v) out += **v;
                };
                for (int i = 0; i < rounds; ++i) {
                    const std::uint64_t number = random() | 1;
                    auto value = std::make_unique<std::uint64_t>(number);
                    auto given = [&] { in += number; };
                    auto& first = random() % 2 == 0 ? a : b;
                    auto& second = &first == &a ? b : a;
                    const auto limit = std::chrono::nanoseconds{random() % 20'000};
                    switch (random() % 4) {
                        case 0:
                            select(on_send(first, std::ref(value), given), on_receive(second, take),
                                   on_timeout(limit));
                            break;
                        case 1:
                            select(on_receive(first, take), on_send(first, std::ref(value), given),
                                   on_stop(stop.get_token()), otherwise());
                            break;
                        case 2:
                            if (first.send_for(std::move(value), limit) == channel_status::ok)
                                given();
                            break;
                        default:
                            if (auto v = first.receive_for(limit)) out += **v;
                    }
                    if (i % 128 == 0) {
                        std::stop_source other;
                        fiber stopper{[&] { other.request_stop(); }};
                        select(on_receive(first, take), on_stop(other.get_token()),
                               on_receive(second, take));
                        stopper.join();
                    }
                }
            };
            on_threads_and_fibers(2, 8, work);
            a.close();
            b.close();
            for (auto& v : a) out += *v;
            for (auto& v : b) out += *v;
            EXPECT_EQ(in, out);
        }
    });
}

TEST_F(select_test, a_move_that_throws_loses_and_doubles_nothing) {
    ums::run({.processors = 2}, [] {
        channel<fragile> a, b;
        constexpr int items = scaled(2000, 200);
        std::vector<std::atomic<int>> seen(items);
        fiber sender{[&] {
            for (int i = 0; i < items; ++i) {
                fragile value{i};
                while (value.number != -1) {
                    try {
                        select(on_send(a, std::ref(value)), on_send(b, std::ref(value)));
                    } catch (const std::runtime_error&) {
                    }
                }
            }
            a.close();
            b.close();
        }};
        auto receive = [&] {
            for (;;) {
                auto from_a = on_receive(a);
                auto from_b = on_receive(b);
                try {
                    const auto r = select(from_a, from_b);
                    if (r.status == channel_status::closed) break;
                    ++seen[static_cast<std::size_t>((r == 0 ? from_a : from_b).value()->number)];
                } catch (const std::runtime_error&) {
                }
            }
        };
        fiber first{receive}, second{receive};
        sender.join();
        first.join();
        second.join();
        for (const auto& n : seen) ASSERT_EQ(n, 1);
    });
    EXPECT_EQ(fragile::alive, 0);
}

}  // namespace
