// SPDX-License-Identifier: MIT

#include "replies.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace {

using namespace memcached;

item_ref item_of(store& s, std::string_view value) {
    item_ref made;
    EXPECT_EQ(s.make("key", 0, 0, static_cast<std::uint32_t>(value.size()), made),
              allocation::done);
    std::memcpy(made->value_begin(), value.data(), value.size());
    return made;
}

// Sends everything, `most_pieces` and `most_bytes` at a time.
std::string sent(replies& r, unsigned most_pieces, std::size_t most_bytes) {
    std::string said;
    iovec pieces[8];
    while (const unsigned n = r.pieces(pieces, most_pieces)) {
        EXPECT_LE(n, most_pieces);
        std::size_t left = most_bytes;
        for (unsigned i = 0; i < n; ++i) {
            EXPECT_NE(pieces[i].iov_len, 0u);
            const std::size_t part = std::min(left, pieces[i].iov_len);
            said.append(static_cast<const char*>(pieces[i].iov_base), part);
            left -= part;
        }
        r.sent(most_bytes - left);
    }
    EXPECT_EQ(r.bytes(), 0u);
    r.clear();
    return said;
}

TEST(replies_test, text_and_values_come_in_order_however_much_is_sent_at_once) {
    store items;
    replies r;
    std::string all;
    for (unsigned most_pieces = 2; most_pieces <= 8; ++most_pieces)
        for (std::size_t most_bytes = 1; most_bytes <= 20; ++most_bytes) {
            all.clear();
            for (int i = 0; i < 10; ++i) {
                // Sometimes there is no text between two values, and no value between two texts.
                const std::string text(static_cast<std::size_t>(i % 3) * 4, 't');
                const std::string value(static_cast<std::size_t>(i * 7 % 5) + 2, '0' + char(i));
                r.text(text);
                all += text;
                if (i == 6) {
                    const replies::mark before = r.here();
                    r.text("taken back");
                    r.value(item_of(items, "too\r\n"));
                    r.take_back(before);
                    continue;
                }
                r.value(item_of(items, value));
                all += value;
            }
            r.text("end");
            all += "end";
            EXPECT_EQ(r.bytes(), all.size());
            EXPECT_EQ(sent(r, most_pieces, most_bytes), all) << most_pieces << ", " << most_bytes;
            EXPECT_TRUE(r.empty());
        }
}

// If each piece that is sent looked at all pieces before it, this would take minutes.
TEST(replies_test, many_values_cost_no_more_each_than_few) {
    store items;
    store::access held{items, "key", 1};
    item_ref one;
    ASSERT_EQ(held.make("key", 0, 0, 2, one), allocation::done);
    std::memcpy(one->value_begin(), "\r\n", 2);
    held.link(*one, nullptr);
    replies r;
    constexpr std::size_t values = 400'000;
    for (std::size_t i = 0; i < values; ++i) {
        r.character('t');
        r.value(held.share(*one));
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    iovec pieces[2];
    std::size_t bytes = 0;
    while (const unsigned n = r.pieces(pieces, 2)) {
        for (unsigned i = 0; i < n; ++i) {
            r.sent(pieces[i].iov_len);
            bytes += pieces[i].iov_len;
        }
        ASSERT_LT(std::chrono::steady_clock::now(), end) << bytes;
    }
    EXPECT_EQ(bytes, values * 3);
}

}  // namespace
