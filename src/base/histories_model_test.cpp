// SPDX-License-Identifier: MIT
//
// The machine with histories of stores (internal/tso_model.hpp) shows what C++20 allows, and
// nothing that it forbids: small programs whose outcomes are known.

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "internal/tso_model.hpp"

namespace {

namespace b = ums::modelled_base;
using ums::tso::checked;
using ums::tso::model;

struct variables {
    b::atomic<int> x, y, z;
    b::atomic<std::uint32_t> lock;
    checked<int> plain{0};
    int r[4] = {-1, -1, -1, -1};
};
using strand = std::function<void(variables&)>;

struct found {
    std::set<std::string> outcomes;  // What r[] was at the end, such as "01--".
    std::string error;               // A race on `plain`, or a deadlock.
};

found run(const std::vector<strand>& strands, bool heavy = true, bool is_tso = false) {
    found all;
    model m;
    m.histories = !is_tso;
    m.checks_orders = true;
    m.without_heavy_fence = !heavy;
    all.error = m.explore([&](model& of) {
                     auto v = std::make_shared<variables>();
                     for (const strand& s : strands) of.strand("strand", [&s, v] { s(*v); });
                     of.at_rest([v, &all, &of, n = strands.size()]() -> std::string {
                         for (std::size_t i = 0; i < n; ++i)
                             if (!of.is_done(i)) return "deadlock";
                         std::string text;
                         for (const int r : v->r) text += r < 0 ? '-' : static_cast<char>('0' + r);
                         all.outcomes.insert(text);
                         return "";
                     });
                 }).error;
    return all;
}

// The table at the end: how often each shape did what C++20 allows, and not what it forbids.
class histories_model_test : public ::testing::Test {
protected:
    struct row {
        int seen = 0, not_seen = 0, wrong = 0;
    };
    static inline std::vector<std::pair<std::string, row>> rows;

    static void TearDownTestSuite() {
        std::printf("%-35s %13s %19s\n", "shape", "allowed: seen", "forbidden: not seen");
        for (const auto& [shape, r] : rows)
            std::printf("%-35s %13d %19d%s\n", shape.c_str(), r.seen, r.not_seen,
                        r.wrong != 0 ? " WRONG" : "");
    }

    // All that follows is of this shape.
    static void shape(const char* name) { rows.emplace_back(name, row{}); }

    static void note(bool is_there, bool must) {
        EXPECT_EQ(is_there, must) << rows.back().first;
        row& r = rows.back().second;
        ++(is_there != must ? r.wrong : must ? r.seen : r.not_seen);
    }
    // There is such an execution, or none; in none is an error.
    static void allows(const std::string& outcome, const std::vector<strand>& strands,
                       bool is_allowed = true) {
        const found all = run(strands);
        EXPECT_EQ(all.error, "");
        note(all.outcomes.contains(outcome), is_allowed);
    }
    static void forbids(const std::string& outcome, const std::vector<strand>& strands) {
        allows(outcome, strands, false);
    }
    // Two accesses to `plain` are in no order in one of them.
    static void races(const std::vector<strand>& strands, bool may = true) {
        const std::string error = run(strands).error;
        if (!may) {
            EXPECT_EQ(error, "");
        }
        note(error.starts_with("not ordered"), may);
    }
    static void never_races(const std::vector<strand>& strands) { races(strands, false); }
};

using v = variables&;
constexpr auto relaxed = b::relaxed, acquire = b::acquire, release = b::release,
               seq_cst = b::seq_cst;

// Store buffering.
TEST_F(histories_model_test, store_buffering) {
    shape("store buffering (SB)");
    const auto sb = [](auto fence, auto store, auto load) {
        return std::vector<strand>{[=](v a) {
                                       a.x.store(1, store);
                                       fence();
                                       a.r[0] = a.y.load(load);
                                   },
                                   [=](v a) {
                                       a.y.store(1, store);
                                       fence();
                                       a.r[1] = a.x.load(load);
                                   }};
    };
    const auto none = [] {};
    const auto full = [] { b::full_fence(); };
    allows("00--", sb(none, relaxed, relaxed));
    allows("00--", sb(none, release, acquire));
    forbids("00--", sb(none, seq_cst, seq_cst));
    forbids("00--", sb(full, relaxed, relaxed));
    allows("00--", sb(none, seq_cst, acquire));
    allows("11--", sb(full, relaxed, relaxed));
}

// A sequentially consistent read-modify-write is no fence, but is ordered with such accesses.
TEST_F(histories_model_test, a_read_modify_write_is_no_fence) {
    shape("SB with a read-modify-write");
    const auto beside_a_fence = [](auto load) {
        return std::vector<strand>{[=](v a) {
                                       a.x.exchange(1, seq_cst);
                                       a.r[0] = a.y.load(load);
                                   },
                                   [](v a) {
                                       a.y.store(1, relaxed);
                                       b::full_fence();
                                       a.r[1] = a.x.load(relaxed);
                                   }};
    };
    allows("00--", beside_a_fence(acquire));
    forbids("00--", beside_a_fence(seq_cst));
    EXPECT_FALSE(run(beside_a_fence(acquire), true, true).outcomes.contains("00--"));  // On x86.
}

TEST_F(histories_model_test, message_passing) {
    shape("message passing (MP)");
    const auto mp = [](auto store, auto load, auto before, auto after) {
        return std::vector<strand>{[=](v a) {
                                       a.x.store(1, relaxed);
                                       before();
                                       a.y.store(1, store);
                                   },
                                   [=](v a) {
                                       a.r[0] = a.y.load(load);
                                       after();
                                       a.r[1] = a.x.load(relaxed);
                                   }};
    };
    const auto none = [] {};
    const auto full = [] { b::full_fence(); };
    allows("10--", mp(relaxed, relaxed, none, none));
    allows("10--", mp(release, relaxed, none, none));
    allows("10--", mp(relaxed, acquire, none, none));
    forbids("10--", mp(release, acquire, none, none));
    forbids("10--", mp(relaxed, relaxed, full, full));
    forbids("10--", mp(relaxed, acquire, full, none));
    forbids("10--", mp(release, relaxed, none, full));
}

TEST_F(histories_model_test, a_load_may_be_two_stores_behind) {
    shape("MP, two stores behind");
    const auto two_behind = [](auto store, auto load) {
        return std::vector<strand>{[=](v a) {
                                       a.x.store(1, relaxed);
                                       a.x.store(2, relaxed);
                                       a.y.store(1, store);
                                   },
                                   [=](v a) {
                                       a.r[0] = a.y.load(load);
                                       a.r[1] = a.x.load(relaxed);
                                   }};
    };
    for (const char* old : {"10--", "11--"}) {
        allows(old, two_behind(relaxed, relaxed));
        forbids(old, two_behind(release, acquire));
    }
}

TEST_F(histories_model_test, one_location_is_coherent) {
    shape("coherence of reads (CoRR)");
    const std::vector<strand> reads{[](v a) {
                                        a.x.store(1, relaxed);
                                        a.x.store(2, relaxed);
                                    },
                                    [](v a) {
                                        a.r[0] = a.x.load(relaxed);
                                        a.r[1] = a.x.load(relaxed);
                                    }};
    for (const char* backwards : {"10--", "20--", "21--"}) forbids(backwards, reads);
    for (const char* forwards : {"00--", "01--", "02--", "11--", "12--", "22--"})
        allows(forwards, reads);
    shape("own writes (CoWR)");
    // What a strand has written itself.
    const std::vector<strand> own{[](v a) {
                                      a.x.store(1, relaxed);
                                      a.r[0] = a.x.load(relaxed);
                                  },
                                  [](v a) { a.x.store(2, relaxed); }};
    forbids("0---", own);
    allows("1---", own);
    allows("2---", own);
}

TEST_F(histories_model_test, a_failed_compare_exchange_may_see_an_old_value) {
    shape("a failed compare-and-swap");
    const auto failed = [](auto store, auto load) {
        return std::vector<strand>{[=](v a) {
                                       a.x.store(1, relaxed);
                                       a.y.store(1, store);
                                   },
                                   [=](v a) {
                                       a.r[0] = a.y.load(load);
                                       int seen = 7;
                                       a.x.compare_exchange(seen, 8, relaxed, relaxed);
                                       a.r[1] = seen;
                                   }};
    };
    allows("10--", failed(relaxed, relaxed));
    forbids("10--", failed(release, acquire));
    shape("two compare-and-swaps");
    // One that succeeds does not.
    const auto succeeds = [](int n) {
        return [n](v a) {
            int seen = 0;
            a.r[n] = a.x.compare_exchange(seen, 1, relaxed, relaxed) ? 1 : 0;
        };
    };
    const std::vector<strand> both{succeeds(0), succeeds(1)};
    forbids("11--", both);
    allows("10--", both);
    allows("01--", both);
}

TEST_F(histories_model_test, a_release_sequence_is_of_read_modify_writes) {
    shape("release sequence");
    const auto chain = [](auto second) {
        return std::vector<strand>{[=](v a) {
                                       a.plain = 1;
                                       a.x.store(1, release);
                                       second(a);
                                   },
                                   [](v a) {
                                       if (a.x.load(acquire) == 2) static_cast<void>(int{a.plain});
                                   }};
    };
    never_races(chain([](v a) { a.x.exchange(2, relaxed); }));
    races(chain([](v a) { a.x.store(2, relaxed); }));  // No more, since C++20.
    shape("release sequence of another strand");
    // Another strand's continues it, too.
    const auto of_two = [](auto order) {
        return std::vector<strand>{[=](v a) {
                                       a.plain = 1;
                                       a.x.store(1, order);
                                   },
                                   [](v a) {
                                       int one = 1;
                                       a.x.compare_exchange(one, 2, relaxed, relaxed);
                                   },
                                   [](v a) {
                                       if (a.x.load(acquire) == 2) static_cast<void>(int{a.plain});
                                   }};
    };
    never_races(of_two(release));
    races(of_two(relaxed));
}

// Independent reads of independent writes.
TEST_F(histories_model_test, two_readers_may_disagree_about_two_writers) {
    shape("independent reads (IRIW)");
    const auto iriw = [](auto store, auto load) {
        return std::vector<strand>{[=](v a) { a.x.store(1, store); },
                                   [=](v a) { a.y.store(1, store); },
                                   [=](v a) {
                                       a.r[0] = a.x.load(load);
                                       a.r[1] = a.y.load(load);
                                   },
                                   [=](v a) {
                                       a.r[2] = a.y.load(load);
                                       a.r[3] = a.x.load(load);
                                   }};
    };
    allows("1010", iriw(release, acquire));
    forbids("1010", iriw(seq_cst, seq_cst));
}

// Write to read causality, and a chain of two.
TEST_F(histories_model_test, causes_are_passed_on) {
    shape("write to read causality (WRC)");
    const auto wrc = [](auto store, auto load) {
        return std::vector<strand>{[](v a) { a.x.store(1, relaxed); },
                                   [=](v a) {
                                       a.r[0] = a.x.load(relaxed);
                                       a.y.store(1, store);
                                   },
                                   [=](v a) {
                                       a.r[1] = a.y.load(load);
                                       a.r[2] = a.x.load(relaxed);
                                   }};
    };
    allows("110-", wrc(relaxed, relaxed));
    forbids("110-", wrc(release, acquire));
    shape("a chain of two (ISA2)");
    const auto isa2 = [](auto last) {
        return std::vector<strand>{[](v a) {
                                       a.x.store(1, relaxed);
                                       a.y.store(1, release);
                                   },
                                   [](v a) {
                                       a.r[0] = a.y.load(acquire);
                                       a.z.store(1, release);
                                   },
                                   [=](v a) {
                                       a.r[1] = a.z.load(last);
                                       a.r[2] = a.x.load(relaxed);
                                   }};
    };
    allows("110-", isa2(relaxed));
    forbids("110-", isa2(acquire));
}

// Read to write causality: a fence is cumulative.
TEST_F(histories_model_test, a_fence_passes_on_what_was_read) {
    shape("read to write causality (RWC)");
    const auto rwc = [](auto fence) {
        return std::vector<strand>{[](v a) { a.x.store(1, relaxed); },
                                   [=](v a) {
                                       a.r[0] = a.x.load(relaxed);
                                       fence();
                                       a.r[1] = a.y.load(relaxed);
                                   },
                                   [=](v a) {
                                       a.y.store(1, relaxed);
                                       fence();
                                       a.r[2] = a.x.load(relaxed);
                                   }};
    };
    allows("100-", rwc([] {}));
    forbids("100-", rwc([] { b::full_fence(); }));
}

// A fence gives no happens-before without a value that is read.
TEST_F(histories_model_test, fences_alone_order_no_plain_variable) {
    shape("two fences and a plain variable");
    races({[](v a) {
               a.plain = 1;
               b::full_fence();
           },
           [](v a) {
               b::full_fence();
               static_cast<void>(int{a.plain});
           }});
    never_races({[](v a) {
                     a.plain = 1;
                     b::full_fence();
                     a.x.store(1, relaxed);
                 },
                 [](v a) {
                     if (a.x.load(relaxed) != 1) return;
                     b::full_fence();
                     static_cast<void>(int{a.plain});
                 }});
}

// The heavy fence is ordered with the light fences of others.
TEST_F(histories_model_test, a_heavy_fence_meets_light_ones) {
    shape("a heavy fence and a light one");
    const auto dekker = [](auto light) {
        return std::vector<strand>{[=](v a) {
                                       a.x.store(1, relaxed);
                                       light();
                                       a.r[0] = a.y.load(relaxed);
                                   },
                                   [](v a) {
                                       a.y.store(1, relaxed);
                                       ums::modelled_os::heavy_fence();
                                       a.r[1] = a.x.load(relaxed);
                                   }};
    };
    forbids("00--", dekker([] { b::compiler_fence(); }));
    allows("00--", dekker([] {}));
    EXPECT_TRUE(run(dekker([] { b::compiler_fence(); }), false).outcomes.contains("00--"));
}

// A bounded loop that waits for a value gets it, or makes all its rounds.
TEST_F(histories_model_test, a_loop_sees_what_it_waits_for) {
    const found all = run({[](v a) {
                               a.plain = 1;
                               a.x.store(1, release);
                           },
                           [](v a) {
                               for (int i = 0; i < 10; ++i) {
                                   if (a.x.load(acquire) == 1) {
                                       a.r[0] = a.plain;
                                       return;
                                   }
                                   b::spin_pause();
                               }
                           }});
    EXPECT_EQ(all.error, "");
    EXPECT_EQ(all.outcomes, (std::set<std::string>{"1---", "----"}));
}

// Without end, by a futex: a state that was seen before closes the loop.
TEST_F(histories_model_test, a_lock_orders_what_it_guards) {
    shape("a lock by futex");
    const auto with = [](auto acquired, auto released) {
        const auto add = [=](v a) {
            b::atomic<std::uint32_t>& lock = a.lock;
            std::uint32_t seen = 0;
            while (!lock.compare_exchange(seen, 1, acquired, relaxed)) {
                if (seen != 0) ums::modelled_os::futex_wait(lock, 1);
                seen = 0;
            }
            a.plain = a.plain + 1;
            lock.store(0, released);
            ums::modelled_os::futex_wake(lock.address());
        };
        return std::vector<strand>{add, add};
    };
    never_races(with(acquire, release));
    races(with(relaxed, release));
    races(with(acquire, relaxed));
}

}  // namespace
