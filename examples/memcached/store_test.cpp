// SPDX-License-Identifier: MIT
// variants: p1

#include "store.hpp"

#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ums/fiber.hpp>
#include <ums/run.hpp>

#include "size_classes.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"

namespace {

using namespace memcached;

class store_test : public conserving_test {};

allocation put(store& s, const std::string& key, std::string value, seconds now = 100) {
    value += "\r\n";
    item_ref it;
    const allocation made = s.make(key, 0, 0, static_cast<std::uint32_t>(value.size()), it);
    if (made != allocation::done) return made;
    std::memcpy(it->value_begin(), value.data(), value.size());
    store::access held{s, key, now};
    held.link(*it, held.find());
    return made;
}

std::string get(store& s, const std::string& key, seconds now = 100) {
    store::access held{s, key, now};
    item* const it = held.find();
    held.count().got(it != nullptr);
    if (it == nullptr) return "";
    held.bump(*it);
    return std::string{it->value().substr(0, it->value_bytes - 2)};
}

TEST_F(store_test, what_was_put_is_found_until_it_is_replaced) {
    store s;
    EXPECT_EQ(get(s, "a"), "");
    put(s, "a", "one");
    EXPECT_EQ(get(s, "a"), "one");
    put(s, "a", "two");
    EXPECT_EQ(get(s, "a"), "two");
    EXPECT_EQ(s.linked().items, 1u);
    EXPECT_EQ(s.linked().bytes, 48u + 8 + 2 + 5);
    const counters sum = s.count();
    EXPECT_EQ(sum.get_hits, 2u);
    EXPECT_EQ(sum.get_misses, 1u);
    EXPECT_EQ(sum.total_items, 2u);
}

TEST_F(store_test, it_finds_each_of_many) {
    store s;
    for (int i = 0; i < scaled(100'000, 10'000); ++i)
        put(s, std::to_string(i), std::to_string(i * 7));
    for (int i = 0; i < scaled(100'000, 10'000); ++i)
        ASSERT_EQ(get(s, std::to_string(i)), std::to_string(i * 7));
}

TEST_F(store_test, its_memory_stays_within_the_limit_and_the_oldest_go) {
    store s{{.memory_bytes = 4 << 20}};
    const std::string value(1000, 'v');
    put(s, "hot", value);
    for (int i = 0; i < 20'000; ++i) {
        ASSERT_EQ(put(s, std::to_string(i), value), allocation::done);
        ASSERT_LE(s.used_bytes(), 4u << 20);
        ASSERT_EQ(get(s, "hot"), value) << i;  // It is in use, so it is never the oldest for long.
    }
    EXPECT_EQ(get(s, "0"), "");
    EXPECT_EQ(get(s, "19999"), value);
    EXPECT_GT(s.linked().items, 3000u);  // They take 1184 bytes each.
    EXPECT_EQ(s.count().evictions, 20'001 - s.linked().items);
}

TEST_F(store_test, of_large_items_the_newest_are_kept) {
    store s{{.memory_bytes = 64u << 20}};
    const std::string value((1 << 20) - 100, 'v');
    constexpr int stored = 200;
    for (int i = 0; i < stored; ++i)
        ASSERT_EQ(put(s, "key" + std::to_string(i), value), allocation::done);
    const auto kept = static_cast<int>(s.linked().items);
    EXPECT_GE(kept, 60);  // This allows for the memory that a block needs beyond its item.
    for (int i = 0; i < stored; ++i)
        EXPECT_EQ(get(s, "key" + std::to_string(i)).empty(), i < stored - kept) << i;
}

TEST_F(store_test, what_was_read_last_is_kept_whatever_its_shard) {
    store s{{.memory_bytes = 8u << 20}};
    const std::string value(1000, 'v');
    int stored = 0;
    while (s.count().evictions == 0) put(s, std::to_string(stored++), value);
    // Read from the last to the first, so now the last is the oldest.
    for (int i = stored; i-- > 0;) get(s, std::to_string(i));
    const auto kept = static_cast<int>(s.linked().items);
    for (int i = 0; i < kept / 2; ++i) put(s, "new" + std::to_string(i), value);
    int wrong = 0;
    for (int i = 1; i < stored; ++i)
        wrong += get(s, std::to_string(i)).empty() != (i > kept - kept / 2);
    EXPECT_EQ(wrong, 0) << "of " << kept;
}

TEST_F(store_test, with_many_fibers_at_most_one_in_a_hundred_kept_is_not_among_the_newest) {
    store s{{.memory_bytes = 16u << 20}};
    const std::string value(1000, 'v');
    constexpr int fibers = 4, each = 20'000;
    std::atomic<int> next{0};
    ums::run([&] {
        std::vector<ums::fiber> all;
        for (int f = 0; f < fibers; ++f)
            all.emplace_back([&] {
                for (int i = 0; i < each; ++i) put(s, std::to_string(next++), value);
            });
        for (auto& f : all) f.join();
    });
    const auto kept = static_cast<int>(s.linked().items);
    ASSERT_GT(kept, 10'000);
    int old = 0;
    for (int i = 0; i < fibers * each - kept; ++i) old += !get(s, std::to_string(i)).empty();
    EXPECT_LE(old, kept / 100) << "of " << kept;
}

TEST_F(store_test, without_eviction_it_is_full_at_the_limit) {
    store s{{.memory_bytes = 1 << 20, .evict = false}};
    const std::string value(10'000, 'v');
    int stored = 0;
    while (put(s, std::to_string(stored), value) == allocation::done) ++stored;
    EXPECT_GT(stored, 80);
    EXPECT_EQ(put(s, "more", value), allocation::no_memory);
    {
        store::access held{s, "0", 100};
        held.unlink(*held.find());
    }
    EXPECT_EQ(put(s, "more", value), allocation::done);
}

TEST_F(store_test, items_of_every_size_up_to_the_largest_fit) {
    store s{{.memory_bytes = 8 << 20}};
    for (std::size_t bytes = 0; bytes < (1 << 20) - 100; bytes = bytes * 5 / 4 + 1) {
        const std::string value(bytes, 'v');
        ASSERT_EQ(put(s, "k", value), allocation::done) << bytes;
        ASSERT_EQ(get(s, "k"), value);
    }
    EXPECT_EQ(put(s, "k", std::string(1 << 20, 'v')), allocation::too_large);
}

TEST_F(store_test, a_reference_outlives_the_item) {
    store s;
    put(s, "a", "one");
    item_ref kept;
    {
        store::access held{s, "a", 100};
        kept = held.share(*held.find());
        held.unlink(*kept);
    }
    EXPECT_EQ(get(s, "a"), "");
    EXPECT_EQ(kept->value(), "one\r\n");
    EXPECT_GT(s.used_bytes(), 0u);
    kept = {};
    EXPECT_EQ(s.used_bytes(), 0u);
}

TEST_F(store_test, classes_grow_and_hold_what_they_are_for) {
    for (unsigned number = 1; number <= classes.count(); ++number) {
        const std::size_t bytes = classes.bytes(number);
        EXPECT_EQ(classes.of(bytes), number);
        EXPECT_EQ(classes.rounded(bytes), bytes);
        EXPECT_GT(classes.rounded(bytes + 1), bytes);
    }
}

TEST_F(store_test, fibers_and_evictions_get_along) {
    store s{{.memory_bytes = 1 << 20}};
    std::atomic<int> wrong{0};
    ums::run([&] {
        std::vector<ums::fiber> all;
        for (int f = 0; f < 8; ++f)
            all.emplace_back([&, f] {
                for (int i = 0; i < scaled(5000, 500); ++i) {
                    const std::string key = std::to_string((i * 7 + f * 31) % 900);
                    const std::string value(static_cast<std::size_t>(i % 5) * 500, key.back());
                    if (i % 3 == 0) put(s, key, value);
                    const std::string found = get(s, key);
                    if (found.find_first_not_of(key.back()) != std::string::npos) ++wrong;
                    if (i % 100 == 0) s.flush(100, 100);
                }
            });
        for (auto& f : all) f.join();
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(s.used_bytes(), 1u << 20);
}

}  // namespace
